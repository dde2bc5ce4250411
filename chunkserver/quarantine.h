// Where replicas that were taken away wait before they go: DIR/quarantine/<chunk>.<instance>.{data,meta}. The
// meta file is a whole replica's, its slot saying when and why: restored, it can be served again.
//
// Nothing leaves by itself: what has waited for kept_for is offered to the master, and goes when the master
// says that nobody will miss it (design §5, D16), or when an operator orders it.
// Runs on the chunkserver's executor. Whoever removes or restores an entry holds its chunk's lock.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "chunkserver/replica_file.h"

namespace picket::cs {

// At most the first `size` bytes.
Task<Result<Buffer>> ReadHead(Fs* fs, std::string path, size_t size);

struct Quarantined {
  std::string name;  // <chunk>.<instance>, 16 hex digits each
  ChunkId chunk;
  std::optional<Slot> slot;  // none: its meta file could not be kept, or cannot be read
  uint64_t bytes = 0;        // of the data file
};

class Quarantine {
 public:
  Quarantine(Env& env, std::string replicas_dir, std::string dir, Nanos kept_for)
      : env_(env), replicas_dir_(std::move(replicas_dir)), dir_(std::move(dir)), kept_for_(kept_for) {}

  // Copies the meta file of a replica that is about to be deleted, `slot` in place of its own; durable on return.
  Task<Status> SaveMeta(Slot slot);
  // Moves the data of a replica whose slot says TOMBSTONE; durable on return. A missing file is success.
  Task<Status> MoveData(Slot slot);

  // In the order of names, at most kMaxListed.
  Task<Result<std::vector<Quarantined>>> List();
  // The slot, and what follows the slots in the meta file. kNotFound.
  struct Meta {
    Slot slot;
    std::string rest;
  };
  Task<Result<Meta>> ReadMeta(std::string name);
  // The data goes back to where replicas are; durable on return. kNotFound.
  Task<Status> TakeData(std::string name, ChunkId chunk);
  // What is left of the entry goes for good, durably. Returns the bytes; kNotFound.
  Task<Result<uint64_t>> Remove(std::string name);

  // Looks for what has waited long enough.
  Task<Status> FindExpired();
  // What was found and has not gone since, by name; at most kMaxExpired.
  const std::map<std::string, Quarantined>& expired() const { return expired_; }

  // False for anything else than a name of an entry: no path is ever made of it.
  static bool ParseName(std::string_view name, ChunkId* chunk);

  static constexpr size_t kMaxListed = 20000;
  static constexpr size_t kMaxExpired = 1000;

 private:
  static std::string NameOf(const Slot& slot) { return ToString(slot.chunk) + "." + ToHex(slot.instance.value); }
  std::string Stem(const Slot& slot) const { return dir_ + "/" + NameOf(slot); }
  // An unsealed replica has the whole chunk reserved; what was never written is freed. Only space is at stake.
  Task<> GiveBackReserved(std::string path);
  Task<Result<uint64_t>> SizeOf(std::string path);

  Env& env_;
  const std::string replicas_dir_;
  const std::string dir_;
  const Nanos kept_for_;
  std::map<std::string, Quarantined> expired_;
};

}  // namespace picket::cs
