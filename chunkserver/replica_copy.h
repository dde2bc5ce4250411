// Making a replica's content what an order says (design §2.3, §4.4): what is equal stays, the rest is filled
// from another replica, block by block, each verified against the CRCs that the order carries: what is
// written is what was ordered, whoever sent it.
#pragma once

#include "chunkserver/replica_file.h"
#include "common/rpc/client.h"
#include "proto/chunkserver_master.pb.h"

namespace picket::cs {

// The CRC of the order's partial last block; 0 when it ends at a block boundary.
inline uint32_t TailCrcOf(const proto::ReconcileSet& set) {
  return set.length() % kBlockSize == 0 ? 0 : set.block_crcs(set.block_crcs_size() - 1);
}
// As many checksums as the length needs, and room for it.
Status CheckSet(ChunkId chunk, const proto::ReconcileSet& set, uint64_t chunk_size);

// The first set.length bytes are those of the order on return; bytes beyond are left to the caller, who ends
// the replica there in the step that writes its marks. Nothing is given up before bytes from the source are
// here and verified; from then on until the caller's step the replica is unclean (ReplicaFile::Cut). SHORT: it
// is named as its own source. Another failure names the source.
// REQUIRES: the chunk's lock, CheckSet, and no slices of the replica being sent.
Task<Status> MakeEqual(Env* env, ChannelPool* channels, ServerId self, std::shared_ptr<ReplicaFile> file,
                       proto::ReconcileSet set, Mono deadline);

}  // namespace picket::cs
