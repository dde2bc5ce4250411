#include "chunkserver/promise.h"

#include "common/base/crc32c.h"
#include "common/base/mutation.h"

namespace picket::cs {

Task<Result<proto::AdvanceVersionResponse>> Promise(ReplicaPtr replica, Self self, Version mark_before,
                                                    std::optional<uint64_t> limit) {
  auto file = replica->file;
  if (!PICKET_MUTANT(sync_begin)) PICKET_CO_TRY(co_await file->Settle());
  if (file->slot().state != ReplicaState::kSealed && file->dirty()) {
    PICKET_CO_TRY(co_await file->SyncUpTo(file->length(), file->slot().lineage));
  }
  const Slot slot = file->slot();
  const uint64_t length = std::min(file->length(), limit.value_or(file->length()));
  const bool cut = length < file->length();
  std::vector<uint32_t> crcs = file->BlockCrcs();
  crcs.resize(BlocksIn(length));
  if (cut && length % kBlockSize != 0) {
    auto tail = co_await file->TailCrcAt(length);
    if (!tail) co_return Fail(tail.error());
    crcs.back() = *tail;
  }
  const bool sealed = slot.state == ReplicaState::kSealed ||
                      (slot.state == ReplicaState::kRecovering && slot.sealed_generation);
  proto::AdvanceVersionResponse promise;
  promise.set_mark_before(mark_before.value);
  promise.set_version(slot.version.value);
  promise.set_generation(slot.generation.value);
  promise.set_state(static_cast<proto::ReplicaState>(slot.state));
  promise.set_length(length);
  for (uint32_t crc : crcs) promise.add_block_crcs(crc);
  promise.set_known_acked(std::min(replica->known_acked, length));
  promise.set_incarnation(self.incarnation.value);
  promise.set_instance(slot.instance.value);
  promise.set_digest(!sealed ? 0 : cut ? Crc32c(crcs.data(), crcs.size() * 4) : slot.digest);
  promise.set_overwritten(file->overwritten());
  promise.set_partial(!slot.raised_in);
  co_return promise;
}

}  // namespace picket::cs
