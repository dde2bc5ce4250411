// The only judge of tokens at a chunkserver: pure functions from (marks of the replica, own boot,
// tokens of the request) to a verdict. Called inside the chunk's critical section for every packet,
// seal, read and order; nothing else compares a token with a mark (HDFS-7065, HDFS-3391).
//
//   token < mark                     STALE_*          final for that token
//   token == mark                    go on
//   token > mark, not by an order    REPLICA_BEHIND   the mark is never raised by it
//   token > mark, by an order        allowed if the order's own condition holds (F2, F3)
//
// A refusal names token, mark and next step. Each check has the name of its mutation point.
#pragma once

#include <cstdint>

#include "chunkserver/replica_format.h"
#include "common/base/error.h"
#include "common/base/ids.h"

namespace picket::cs {

// What a replica's slot says, and how long it is now.
struct Marks {
  ChunkId chunk;
  ReplicaState state = ReplicaState::kNone;
  Version version;
  Generation generation;
  Incarnation raised_in;  // 0: it gave bytes up to be filled, and was not
  InstanceId instance;
  AttemptId attempt;
  Generation sealed_generation;
  uint32_t digest = 0;  // of a sealed replica
  uint64_t length = 0;
};

// Who this chunkserver is in this boot.
struct Self {
  std::string cluster;
  ServerId server;
  Incarnation incarnation;
};

// ---- reads -----------------------------------------------------------------------------------------

// A client's read: the replica is sealed, or clean and not still to be filled. Any version from the one under
// which its content was last committed up to the mark will do: an attempt that raises the mark takes no
// acknowledged byte away, so a reader is held up neither by it nor by its death.
Status FenceRead(const Marks& marks, const Self& self, std::optional<Version> readable_from, Version version);
// A replica reads the whole content, during a reconciliation: at exactly the named mark.
Status FenceSource(const Marks& marks, Version version);

// ---- mutations -------------------------------------------------------------------------------------

struct MutationTokens {
  Version version;
  Generation generation;
  Incarnation target;  // the boot of the receiver that the sender means (F4)
};
Status FenceMutation(const Marks& marks, const Self& self, const MutationTokens& tokens);

// A packet with bytes is number `last + 1` and begins at the end; an empty one (a sync) may also bear
// the last number. OUT_OF_ORDER otherwise.
Status FenceSequence(const Marks& marks, uint64_t last_serial, uint64_t serial, uint64_t offset, bool empty);

// A packet that replaces bytes is number `last + 1` too, and ends at or below the end.
Status FenceOverwrite(const Marks& marks, uint64_t last_serial, uint64_t serial, uint64_t offset, uint64_t size);

enum class SealStep { kSeal, kAlreadySealed };
// Exact length (D9); a repeat under the same version, generation and length is answered again.
Result<SealStep> FenceSeal(const Marks& marks, const Self& self, const MutationTokens& tokens, uint64_t length);

// ---- orders ----------------------------------------------------------------------------------------

struct OrderTokens {
  std::string cluster;
  Epoch epoch;
  ServerId server;
  Incarnation incarnation;
};
// Meant for this boot of this server of this cluster, and not from an older master than the one marked,
// nor from one of another history (F12). An epoch above the mark passes: the caller makes it the mark,
// durably, and asks again, before anything else.
Status FenceOrder(const Self& self, const Epoch& mark, const OrderTokens& order);

enum class CreateStep { kCreate, kAlreadyCreated };
// Only above every mark that is left here, tombstones included; a repeat of the same order (version,
// generation, attempt) is answered again.
Result<CreateStep> FenceCreate(const Marks& marks, Version version, Generation generation, AttemptId attempt);

enum class AdvanceStep { kRaise, kAlreadyThere };
struct AdvanceTokens {
  Version from;
  Version to;
  Generation generation;
  bool reopen = false;
  bool set = false;  // the order replaces or removes bytes
};
// The mark must be exactly `from`. At `to` already: answered again from the present state, and nothing
// is executed a second time (F2, D5).
Result<AdvanceStep> FenceAdvance(const Marks& marks, const AdvanceTokens& order);

enum class BeginStep { kBegin, kAlreadyBegun };
struct BeginTokens {
  Version from;
  Version to;
  Generation generation;
};
// A mark from `from` on and below `to`: one in between was left by an attempt that was not committed. Below
// `from` the replica missed a set and stays as it is, so that no attempt can hide it (F3). At `to` already:
// answered again, nothing is executed.
Result<BeginStep> FenceBeginRecovery(const Marks& marks, const BeginTokens& order);

enum class FinishStep { kFinish, kAlreadyFinished };
struct FinishTokens {
  Version version;
  Generation generation;
  uint64_t length = 0;
  uint32_t digest = 0;
  bool truncation = false;
};
// Executed once: only at exactly these marks and in state `recovering`; sealed there by this generation with
// the same content is "done" (F7). Below what is known to be acknowledged only a truncation may end (F6).
Result<FinishStep> FenceFinishRecovery(const Marks& marks, uint64_t known_acked, const FinishTokens& order);

// A lease for the open, clean replica at exactly this version and generation.
Status FenceGrant(const Marks& marks, const Self& self, Version version, Generation generation);

// A replica comes back from quarantine at `version`: only above every mark that is left here, or at that of
// the tombstone which its own deletion left.
Status FenceRestore(const Marks& marks, Version version, Generation generation);

enum class DeleteStep { kDelete, kAlreadyGone };
// Exactly this instance at exactly this version (F13); gone with a tombstone at or above it is success.
Result<DeleteStep> FenceDelete(const Marks& marks, Version version, InstanceId instance);

}  // namespace picket::cs
