// READ, VERIFY_REPLICA, READ_REPLICA.
//
// 1. A reader of an unsealed chunk gets bytes up to the known-acked length only (F16).
// 2. Sealed bytes go out by sendfile with the stored CRCs; the reader verifies. Open ones are read with
//    the chunk's lock held.
// 3. "It looked bad to me" makes the server look, and only what it finds counts (HDFS-1371).
// 4. What one replica fills from is verified before it is sent: corruption is never copied on.
// Runs on the chunkserver's executor.
#pragma once

#include "chunkserver/change_log.h"
#include "chunkserver/replica_store.h"
#include "common/rpc/server.h"
#include "proto/data.pb.h"

namespace picket::cs {

class ReadService {
 public:
  ReadService(Env& env, const Self& self, ReplicaStore& store, ChangeLog& changes)
      : env_(env), self_(self), store_(store), changes_(changes) {}

  Task<Result<RpcReply>> Read(RpcRequest request);
  Task<Result<RpcReply>> ReadReplica(RpcRequest request);
  Task<Result<proto::VerifyReplicaResponse>> Verify(proto::VerifyReplicaRequest request, Mono deadline);

  static constexpr uint64_t kMaxRead = kMaxFramePayload;

 private:
  Task<Status> Use(ReplicaPtr replica);
  Task<Result<Payload>> ReadOpen(ReplicaPtr replica, uint64_t begin, uint64_t end, uint32_t* tail_crc);
  Task<Error> FoundCorrupt(ReplicaPtr replica, std::string why);
  Error Blame(Error e) const;

  Env& env_;
  const Self& self_;
  ReplicaStore& store_;
  ChangeLog& changes_;
};

}  // namespace picket::cs
