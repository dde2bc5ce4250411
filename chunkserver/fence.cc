#include "chunkserver/fence.h"

#include "common/base/mutation.h"

namespace picket::cs {
namespace {

std::string Name(const Marks& m) { return "chunk " + ToString(m.chunk); }

std::unexpected<Error> Refuse(Code code, std::string message, std::string next_step) {
  return Fail(Error(code, std::move(message)).WithNextStep(std::move(next_step)));
}

// A replica that is there, whatever its marks.
Status JudgePresence(const Marks& m) {
  if ((m.state == ReplicaState::kNone || m.state == ReplicaState::kTombstone) && !PICKET_MUTANT(fence_presence)) {
    return Refuse(Code::kNotFound, Name(m) + ": no replica here", "ask the master where the chunk is");
  }
  if (m.state == ReplicaState::kCorrupt && !PICKET_MUTANT(fence_corrupt)) {
    return Refuse(Code::kCorrupt, Name(m) + ": the replica is corrupt", "use another replica");
  }
  return {};
}

Error StaleVersion(const Marks& m, Version token) {
  return Error(Code::kStaleVersion,
               Name(m) + ": version " + token.ToString() + " is older than the mark " + m.version.ToString())
      .WithTokens(token.value, m.version.value)
      .WithNextStep("ask the master for the chunk's present version");
}

Status JudgeVersion(const Marks& m, Version token) {
  if (token < m.version && !PICKET_MUTANT(fence_version)) return Fail(StaleVersion(m, token));
  if (token > m.version && !PICKET_MUTANT(fence_version_ahead)) {
    return Fail(Error(Code::kReplicaBehind, Name(m) + ": this replica is at version " + m.version.ToString() +
                                                " and missed version " + token.ToString())
                    .WithTokens(token.value, m.version.value)
                    .WithNextStep("ask the master which replicas hold the chunk"));
  }
  return {};
}

Error StaleGeneration(const Marks& m, Generation token) {
  return Error(Code::kStaleGeneration,
               Name(m) + ": write session " + token.ToString() + " is older than the mark " + m.generation.ToString())
      .WithTokens(token.value, m.generation.value)
      .WithNextStep("another writer has taken over: open the file again");
}

Status JudgeGeneration(const Marks& m, Generation token) {
  if (token < m.generation && !PICKET_MUTANT(fence_generation)) {
    return Fail(StaleGeneration(m, token));
  }
  if (token > m.generation && !PICKET_MUTANT(fence_generation_ahead)) {
    return Fail(Error(Code::kReplicaBehind, Name(m) + ": this replica knows write session " + m.generation.ToString() +
                                                ", not yet " + token.ToString())
                    .WithTokens(token.value, m.generation.value)
                    .WithNextStep("ask the master for a grant"));
  }
  return {};
}

Status JudgeTarget(const Marks& m, const Self& self, Incarnation target) {
  if (target != self.incarnation && !PICKET_MUTANT(fence_incarnation)) {
    return Fail(Error(Code::kReplicaUnclean, Name(m) + ": meant for boot " + std::to_string(target.value) +
                                                 " of this server, which is in boot " +
                                                 std::to_string(self.incarnation.value))
                    .WithTokens(target.value, self.incarnation.value)
                    .WithNextStep("ask the master for a grant"));
  }
  return {};
}

// F4: after a restart an unsealed replica may lack acknowledged bytes.
Status JudgeClean(const Marks& m, const Self& self) {
  if (m.raised_in != self.incarnation && !PICKET_MUTANT(fence_unclean)) {
    return Fail(Error(Code::kReplicaUnclean, Name(m) + (m.raised_in ? ": this server restarted since its last grant"
                                                                    : ": it gave bytes up that are still to be filled"))
                    .WithTokens(m.raised_in.value, self.incarnation.value)
                    .WithNextStep("ask the master for a grant"));
  }
  return {};
}

Status JudgeOpen(const Marks& m) {
  if (m.state != ReplicaState::kOpen && !PICKET_MUTANT(fence_state)) {
    return Refuse(Code::kConflict, Name(m) + ": the replica is " + std::string(StateName(m.state)) + ", not open",
                  "ask the master for a grant");
  }
  return {};
}

Status JudgeSerial(const Marks& m, uint64_t last_serial, uint64_t serial, bool may_repeat) {
  const bool in_turn = serial == last_serial + 1 || (may_repeat && serial == last_serial);
  if (!in_turn && !PICKET_MUTANT(fence_serial)) {
    return Fail(Error(Code::kOutOfOrder, Name(m) + ": packet " + std::to_string(serial) + " came after packet " +
                                             std::to_string(last_serial))
                    .WithTokens(serial, last_serial)
                    .WithNextStep("ask the master for a grant"));
  }
  return {};
}

}  // namespace

Status FenceRead(const Marks& m, const Self& self, std::optional<Version> readable_from, Version version) {
  PICKET_TRY(JudgePresence(m));
  if (readable_from && version < *readable_from && !PICKET_MUTANT(read_from)) return Fail(StaleVersion(m, version));
  if (version > m.version) PICKET_TRY(JudgeVersion(m, version));
  if (m.state == ReplicaState::kSealed) return {};
  if (m.state == ReplicaState::kCreating && !PICKET_MUTANT(fence_read_state)) {
    return Refuse(Code::kReplicaBehind, Name(m) + ": the replica is still being filled", "use another replica");
  }
  PICKET_TRY(JudgeClean(m, self));
  if (!readable_from && !PICKET_MUTANT(read_unsure)) {
    return Refuse(Code::kReplicaUnclean, Name(m) + ": what was acknowledged of it is not known here yet",
                  "use another replica");
  }
  return {};
}

Status FenceSource(const Marks& m, Version version) {
  PICKET_TRY(JudgePresence(m));
  PICKET_TRY(JudgeVersion(m, version));
  if (m.state == ReplicaState::kCreating && !PICKET_MUTANT(fence_source_state)) {
    return Refuse(Code::kConflict, Name(m) + ": a replica that is being filled is no source", "use another source");
  }
  return {};
}

Status FenceMutation(const Marks& m, const Self& self, const MutationTokens& t) {
  PICKET_TRY(JudgePresence(m));
  PICKET_TRY(JudgeVersion(m, t.version));
  PICKET_TRY(JudgeGeneration(m, t.generation));
  PICKET_TRY(JudgeTarget(m, self, t.target));
  PICKET_TRY(JudgeOpen(m));
  return JudgeClean(m, self);
}

Status FenceSequence(const Marks& m, uint64_t last_serial, uint64_t serial, uint64_t offset, bool empty) {
  PICKET_TRY(JudgeSerial(m, last_serial, serial, empty));
  if (offset != m.length && !PICKET_MUTANT(fence_offset)) {
    return Fail(Error(Code::kOutOfOrder, Name(m) + ": packet at " + std::to_string(offset) + ", the replica ends at " +
                                             std::to_string(m.length))
                    .WithTokens(offset, m.length)
                    .WithNextStep("ask the master for a grant"));
  }
  return {};
}

Status FenceOverwrite(const Marks& m, uint64_t last_serial, uint64_t serial, uint64_t offset, uint64_t size) {
  PICKET_TRY(JudgeSerial(m, last_serial, serial, false));
  const bool within = size > 0 && offset <= m.length && size <= m.length - offset;
  if (!within && !PICKET_MUTANT(fence_overwrite_bounds)) {
    return Fail(Error(Code::kOutOfOrder, Name(m) + ": an overwrite of " + std::to_string(size) + " bytes at " +
                                             std::to_string(offset) + ", the replica ends at " +
                                             std::to_string(m.length))
                    .WithTokens(offset + size, m.length)
                    .WithNextStep("ask the master for a grant"));
  }
  return {};
}

Result<SealStep> FenceSeal(const Marks& m, const Self& self, const MutationTokens& t, uint64_t length) {
  PICKET_TRY(JudgePresence(m));
  PICKET_TRY(JudgeVersion(m, t.version));
  PICKET_TRY(JudgeGeneration(m, t.generation));
  PICKET_TRY(JudgeTarget(m, self, t.target));
  const bool sealed = m.state == ReplicaState::kSealed && m.sealed_generation == t.generation;
  if (!sealed) {
    PICKET_TRY(JudgeOpen(m));
    PICKET_TRY(JudgeClean(m, self));
  }
  if (length != m.length && !PICKET_MUTANT(fence_seal_length)) {
    return Fail(
        Error(length > m.length ? Code::kShort : Code::kConflict,
              Name(m) + ": seal at " + std::to_string(length) + ", the replica ends at " + std::to_string(m.length))
            .WithTokens(length, m.length)
            .WithNextStep("wait for every acknowledgement, or ask the master for a grant"));
  }
  return sealed ? SealStep::kAlreadySealed : SealStep::kSeal;
}

Status FenceOrder(const Self& self, const Epoch& mark, const OrderTokens& o) {
  if (o.cluster != self.cluster && !PICKET_MUTANT(fence_cluster)) {
    return Refuse(Code::kWrongCluster,
                  "an order of cluster " + o.cluster + " reached a server of cluster " + self.cluster,
                  "check the addresses of both clusters");
  }
  if (o.server != self.server && !PICKET_MUTANT(fence_order_server)) {
    return Refuse(Code::kConflict,
                  "an order for server " + ToString(o.server) + " reached server " + ToString(self.server),
                  "wait until the server has registered its new address");
  }
  if (o.incarnation != self.incarnation && !PICKET_MUTANT(fence_order_incarnation)) {
    return Fail(Error(Code::kConflict, "an order for boot " + std::to_string(o.incarnation.value) + " of server " +
                                           ToString(self.server) + ", which is in boot " +
                                           std::to_string(self.incarnation.value))
                    .WithTokens(o.incarnation.value, self.incarnation.value)
                    .WithNextStep("wait until the server has registered again"));
  }
  if (o.epoch.number < mark.number && !PICKET_MUTANT(fence_epoch)) {
    return Fail(Error(Code::kStaleEpoch, "an order of epoch " + std::to_string(o.epoch.number) + ", while epoch " +
                                             std::to_string(mark.number) + " is known here")
                    .WithTokens(o.epoch.number, mark.number)
                    .WithNextStep("a newer master is active: stop"));
  }
  if (o.epoch.number == mark.number && o.epoch.nonce != mark.nonce && !PICKET_MUTANT(fence_epoch_nonce)) {
    return Fail(Error(Code::kHistoryLost, "epoch " + std::to_string(mark.number) +
                                              " has another nonce here: the master's metadata is not the one that "
                                              "this server has known")
                    .WithTokens(o.epoch.nonce, mark.nonce)
                    .WithNextStep("stop the master and restore its newest metadata"));
  }
  return {};
}

Result<CreateStep> FenceCreate(const Marks& m, Version version, Generation generation, AttemptId attempt) {
  if (m.state == ReplicaState::kNone) return CreateStep::kCreate;
  const bool repeat = m.state != ReplicaState::kTombstone && m.state != ReplicaState::kCorrupt &&
                      version == m.version && generation == m.generation && attempt == m.attempt;
  if (repeat) return CreateStep::kAlreadyCreated;
  if (version <= m.version && !PICKET_MUTANT(fence_create_version)) {
    return Fail(Error(Code::kStaleVersion, Name(m) + ": create at version " + version.ToString() +
                                               ", but the mark here is " + m.version.ToString() + " (" +
                                               std::string(StateName(m.state)) + ")")
                    .WithTokens(version.value, m.version.value)
                    .WithNextStep("mint a higher version"));
  }
  if (generation < m.generation && !PICKET_MUTANT(fence_create_generation)) {
    return Fail(StaleGeneration(m, generation));
  }
  return CreateStep::kCreate;
}

Result<AdvanceStep> FenceAdvance(const Marks& m, const AdvanceTokens& o) {
  PICKET_TRY(JudgePresence(m));
  if (o.to <= o.from && !PICKET_MUTANT(fence_advance_order)) {
    return Fail(Error(Code::kInvalidArgument, Name(m) + ": an order from version " + o.from.ToString() + " to " +
                                                  o.to.ToString() + " does not raise anything")
                    .WithTokens(o.to.value, o.from.value)
                    .WithNextStep("mint a higher version"));
  }
  if (m.version == o.to && !PICKET_MUTANT(fence_once)) {
    PICKET_TRY(JudgeGeneration(m, o.generation));
    return AdvanceStep::kAlreadyThere;
  }
  if (m.version < o.from && !PICKET_MUTANT(fence_advance_behind)) {
    return Fail(Error(Code::kReplicaBehind, Name(m) + ": the order begins at version " + o.from.ToString() +
                                                ", this replica is at " + m.version.ToString())
                    .WithTokens(o.from.value, m.version.value)
                    .WithNextStep("the replica is stale: leave it out, or join it anew"));
  }
  if (m.version > o.from && !PICKET_MUTANT(fence_advance_stale)) {
    return Fail(Error(Code::kStaleVersion, Name(m) + ": the order begins at version " + o.from.ToString() +
                                               ", the mark is " + m.version.ToString())
                    .WithTokens(o.from.value, m.version.value)
                    .WithNextStep("a newer attempt took over: give this one up"));
  }
  if (o.generation < m.generation && !PICKET_MUTANT(fence_advance_generation)) {
    return Fail(StaleGeneration(m, o.generation));
  }
  if (m.state == ReplicaState::kSealed && o.set && !o.reopen && !PICKET_MUTANT(fence_advance_sealed)) {
    return Refuse(Code::kConflict, Name(m) + ": sealed bytes are replaced only by an order that reopens",
                  "order with reopen");
  }
  return AdvanceStep::kRaise;
}

Result<BeginStep> FenceBeginRecovery(const Marks& m, const BeginTokens& o) {
  PICKET_TRY(JudgePresence(m));
  if (o.to <= o.from && !PICKET_MUTANT(fence_begin_order)) {
    return Fail(Error(Code::kInvalidArgument, Name(m) + ": a recovery from version " + o.from.ToString() + " to " +
                                                  o.to.ToString() + " does not raise anything")
                    .WithTokens(o.to.value, o.from.value)
                    .WithNextStep("mint a higher version"));
  }
  if (m.version == o.to && !PICKET_MUTANT(fence_begin_once)) {
    PICKET_TRY(JudgeGeneration(m, o.generation));
    if (m.state == ReplicaState::kRecovering || m.state == ReplicaState::kSealed) return BeginStep::kAlreadyBegun;
    return Refuse(Code::kConflict, Name(m) + ": version " + o.to.ToString() + " was not raised by a recovery",
                  "mint a higher version");
  }
  if (m.version < o.from && !PICKET_MUTANT(fence_begin_behind)) {
    return Fail(Error(Code::kReplicaBehind, Name(m) + ": the recovery begins at version " + o.from.ToString() +
                                                ", this replica is at " + m.version.ToString())
                    .WithTokens(o.from.value, m.version.value)
                    .WithNextStep("the replica is stale: leave it out"));
  }
  if (m.version > o.to && !PICKET_MUTANT(fence_begin_stale)) {
    return Fail(Error(Code::kStaleVersion, Name(m) + ": the recovery's version " + o.to.ToString() +
                                               " is older than the mark " + m.version.ToString())
                    .WithTokens(o.to.value, m.version.value)
                    .WithNextStep("a newer attempt took over: give this one up"));
  }
  if (o.generation < m.generation && !PICKET_MUTANT(fence_begin_generation)) {
    return Fail(StaleGeneration(m, o.generation));
  }
  if (m.state == ReplicaState::kCreating && !PICKET_MUTANT(fence_begin_state)) {
    return Refuse(Code::kReplicaBehind, Name(m) + ": a replica that is still to be filled tells nothing",
                  "leave it out");
  }
  return BeginStep::kBegin;
}

Result<FinishStep> FenceFinishRecovery(const Marks& m, uint64_t known_acked, const FinishTokens& o) {
  PICKET_TRY(JudgePresence(m));
  if (!PICKET_MUTANT(fence_finish_exact)) {
    PICKET_TRY(JudgeVersion(m, o.version));
    PICKET_TRY(JudgeGeneration(m, o.generation));
  }
  if (m.state == ReplicaState::kSealed && m.sealed_generation == o.generation && !PICKET_MUTANT(fence_finish_once)) {
    if (o.length == m.length && o.digest == m.digest) return FinishStep::kAlreadyFinished;
    return Fail(Error(Code::kConflict, Name(m) + ": finish at " + std::to_string(o.length) +
                                           " bytes, but this recovery sealed it at " + std::to_string(m.length) +
                                           (o.length == m.length ? " with another digest" : ""))
                    .WithTokens(o.length, m.length)
                    .WithNextStep("begin a new recovery"));
  }
  if (m.state != ReplicaState::kRecovering && !PICKET_MUTANT(fence_finish_state)) {
    return Refuse(Code::kConflict, Name(m) + ": the replica is " + std::string(StateName(m.state)) + ", not recovering",
                  "begin a new recovery");
  }
  if (o.length < known_acked && !o.truncation && !PICKET_MUTANT(fence_finish_acked)) {
    return Fail(Error(Code::kIntegrity, Name(m) + ": recovery ends at " + std::to_string(o.length) + ", but " +
                                            std::to_string(known_acked) + " bytes are known to be acknowledged")
                    .WithTokens(o.length, known_acked)
                    .WithNextStep("keep every replica and inspect them with 'picket chunk show'"));
  }
  return FinishStep::kFinish;
}

Status FenceRestore(const Marks& m, Version version, Generation generation) {
  if (m.state == ReplicaState::kNone) return {};
  if (m.state != ReplicaState::kTombstone && !PICKET_MUTANT(fence_restore_presence)) {
    return Refuse(Code::kConflict, Name(m) + ": there is a replica here, at version " + m.version.ToString(),
                  "delete it first, or leave the other one in quarantine");
  }
  if (version < m.version && !PICKET_MUTANT(fence_restore_version)) {
    return Fail(Error(Code::kStaleVersion, Name(m) + ": the replica in quarantine has version " + version.ToString() +
                                               ", the mark here is " + m.version.ToString())
                    .WithTokens(version.value, m.version.value)
                    .WithNextStep("its bytes are out of date: leave it in quarantine"));
  }
  if (generation < m.generation && !PICKET_MUTANT(fence_restore_generation)) {
    return Fail(StaleGeneration(m, generation));
  }
  return {};
}

Status FenceGrant(const Marks& m, const Self& self, Version version, Generation generation) {
  PICKET_TRY(JudgePresence(m));
  PICKET_TRY(JudgeVersion(m, version));
  PICKET_TRY(JudgeGeneration(m, generation));
  PICKET_TRY(JudgeOpen(m));
  return JudgeClean(m, self);
}

Result<DeleteStep> FenceDelete(const Marks& m, Version version, InstanceId instance) {
  if (m.state == ReplicaState::kNone) return DeleteStep::kAlreadyGone;
  if (m.state == ReplicaState::kTombstone) {
    if (version <= m.version) return DeleteStep::kAlreadyGone;
    return Fail(JudgePresence(m).error());
  }
  if (version != m.version && !PICKET_MUTANT(fence_delete_version)) {
    return Fail(Error(version < m.version ? Code::kStaleVersion : Code::kReplicaBehind,
                      Name(m) + ": delete at version " + version.ToString() + ", the mark is " + m.version.ToString())
                    .WithTokens(version.value, m.version.value)
                    .WithNextStep("wait for the server's next report"));
  }
  if (instance != m.instance && !PICKET_MUTANT(fence_delete_instance)) {
    return Fail(Error(Code::kConflict, Name(m) + ": delete of instance " + std::to_string(instance.value) +
                                           ", here is instance " + std::to_string(m.instance.value))
                    .WithTokens(instance.value, m.instance.value)
                    .WithNextStep("wait for the server's next report"));
  }
  return DeleteStep::kDelete;
}

}  // namespace picket::cs
