// Where deleted replicas wait before they go: DIR/quarantine/<chunk>.<instance>.{data,meta}. The meta
// file is a whole replica's again, its slot saying when it was deleted: moved back under its chunk's name
// it can be served.
//
// Nothing leaves before kept_for has passed, whatever the space (design §5).
// Runs on the chunkserver's executor.
#pragma once

#include <string>

#include "chunkserver/replica_file.h"

namespace picket::cs {

class Quarantine {
 public:
  Quarantine(Env& env, std::string replicas_dir, std::string dir, Nanos kept_for)
      : env_(env), replicas_dir_(std::move(replicas_dir)), dir_(std::move(dir)), kept_for_(kept_for) {}

  // Copies the meta file of a replica that is about to be deleted; durable on return.
  Task<Status> SaveMeta(Slot slot, int64_t wall_ns);
  // Moves the data of a replica whose slot says TOMBSTONE; durable on return. A missing file is success.
  Task<Status> MoveData(Slot slot);
  // Removes what has waited long enough. Returns the number of replicas removed.
  Task<Result<size_t>> Purge();

 private:
  std::string Stem(const Slot& slot) const {
    return dir_ + "/" + ToString(slot.chunk) + "." + ToHex(slot.instance.value);
  }
  // An unsealed replica has the whole chunk reserved; what was never written is freed. Only space is at stake.
  Task<> GiveBackReserved(std::string path);

  Env& env_;
  const std::string replicas_dir_;
  const std::string dir_;
  const Nanos kept_for_;
};

}  // namespace picket::cs
