// APPEND_RECORD and LOOKUP_RECORD: many writers, one primary that picks the offset, and each record once
// (GFS §3.3, F15).
//
// 1. The fence and the search for an earlier attempt are one critical section with what follows: the record's
//    frame goes down the chain as the primary's next packet (mutation.h), or nothing is appended.
// 2. A record that is here already is answered with its first offset, once every member is known to have it:
//    an empty packet behind it, answered by all, says so. An attempt that hangs in the chain is waited for.
// 3. A frame that does not fit: the chunk is padded to its end on every member, and only then is it said to
//    be full.
// 4. "Not applied" is definite only of a sealed replica at exactly the asked version.
// Runs on the chunkserver's executor.
#pragma once

#include "chunkserver/mutation.h"
#include "chunkserver/record_windows.h"

namespace picket::cs {

class RecordAppendService {
 public:
  RecordAppendService(Env& env, const Self& self, ReplicaStore& store, LeaseHolder& leases, ChangeLog& changes,
                      MutationService& mutations)
      : env_(env),
        self_(self),
        store_(store),
        leases_(leases),
        changes_(changes),
        mutations_(mutations),
        windows_(changes) {}

  // For RpcServer::HandleOrdered.
  void OnAppend(RpcRequest request, Responder responder);
  Task<Result<proto::LookupRecordResponse>> Lookup(proto::LookupRecordRequest request, Mono deadline);

 private:
  using Packet = MutationService::Packet;
  struct Append {
    proto::AppendRecordRequest request;
    Buffer record;
    Mono deadline;
  };
  Task<> Run(ReplicaPtr replica, FifoLock::Ticket ticket, Append append, Responder responder);
  Task<Result<proto::AppendRecordResponse>> Process(ReplicaPtr replica, FifoLock::Ticket ticket, Append append);
  Task<Result<proto::AppendRecordResponse>> AnswerAgain(ReplicaPtr replica, FifoLock::Ticket ticket, Packet behind,
                                                        RecordWindow::Place place);
  Task<Error> FillUp(ReplicaPtr replica, FifoLock::Ticket ticket, Packet last, bool torn, uint64_t wanted);
  // An empty one, next in turn.
  Packet NextPacket(const Replica& replica, const Append& append) const;
  Status VerifyRecord(const Append& append, uint64_t chunk_size) const;
  Error Blame(Error e) const;

  Env& env_;
  const Self& self_;
  ReplicaStore& store_;
  LeaseHolder& leases_;
  ChangeLog& changes_;
  MutationService& mutations_;
  RecordWindows windows_;
};

}  // namespace picket::cs
