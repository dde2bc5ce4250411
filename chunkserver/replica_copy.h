// Filling a replica from another one (design §2.3): block by block, each verified against the CRCs that
// the master's order carries, so that what is written is what was ordered, whoever sent it.
#pragma once

#include "chunkserver/replica_file.h"
#include "common/rpc/client.h"
#include "proto/chunkserver_master.pb.h"

namespace picket::cs {

// Appends [file->length(), set.length) of the chunk. REQUIRES: the chunk's lock; file->length() is a
// block boundary below set.length. A failure names the source; what was appended until then stays.
Task<Status> FillFrom(Env* env, ChannelPool* channels, std::shared_ptr<ReplicaFile> file, proto::ReconcileSet set,
                      Mono deadline);

}  // namespace picket::cs
