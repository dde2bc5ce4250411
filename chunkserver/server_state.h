// The chunkserver's own durable numbers, in the two-slot file `server_state`:
//
// 1. incarnation: raised and synced at each start, before anything is served or reported.
// 2. instances: reserved durably in ranges; none is ever handed out twice (F13).
// 3. the epoch mark: number and nonce of the newest master seen, durable before anything is done for
//    that master and before the first report to it (F12, F13). The highest revision seen with it is
//    kept in memory and written with whatever slot is written anyway.
//
// After a failed write or sync nothing more is promised: every later change fails.
// Runs on the chunkserver's executor.
#pragma once

#include <memory>
#include <string>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/env/sync.h"

namespace picket::cs {

struct EpochMark {
  Epoch epoch;
  uint64_t revision = 0;
  bool operator==(const EpochMark&) const = default;
};

// The contents of one slot of the file.
struct ServerNumbers {
  uint64_t sequence = 0;
  ServerId server;
  Incarnation incarnation;
  uint64_t instances_reserved = 0;  // every instance up to it may have been handed out
  EpochMark mark;
  bool operator==(const ServerNumbers&) const = default;
};
inline constexpr size_t kServerSlotSize = 4096;
std::string EncodeServerSlot(const ServerNumbers& numbers);  // kServerSlotSize bytes
Result<ServerNumbers> DecodeServerSlot(std::string_view bytes);

class ServerState {
 public:
  explicit ServerState(Env& env) : env_(env), writing_(env) {}

  // The file's content before the first start: incarnation 0.
  static std::string Initial(ServerId server);
  // Reads the file, raises the incarnation and makes it durable. kNotFound, kCorrupt, kIoError.
  Task<Status> Open(std::string path, ServerId server);

  Incarnation incarnation() const { return numbers_.incarnation; }
  const EpochMark& mark() const { return numbers_.mark; }

  // A number never handed out before by this server.
  Task<Result<InstanceId>> NextInstance();
  // Makes a newer epoch the mark, durable on return. STALE_EPOCH below the mark, HISTORY_LOST at the
  // same number with another nonce. At the mark: nothing to do.
  Task<Status> RaiseEpoch(Epoch epoch);
  // Remembers the highest revision seen with the marked epoch. Not durable by itself.
  void SeeRevision(const Epoch& epoch, uint64_t revision);

  static constexpr uint64_t kInstanceRange = 1024;

 private:
  Task<Status> Write(ServerNumbers next);

  Env& env_;
  FifoLock writing_;
  std::string path_;
  std::shared_ptr<File> file_;
  ServerNumbers numbers_;
  uint64_t last_instance_ = 0;
  bool failed_ = false;
};

}  // namespace picket::cs
