#include "chunkserver/registrar.h"

#include "common/base/mutation.h"

namespace picket::cs {

Task<proto::Space> Registrar::Space() {
  proto::Space out;
  const ReplicaStore::Totals totals = store_.totals();
  out.set_replica_count(totals.replicas);
  out.set_replica_bytes(totals.bytes);
  auto space = co_await env_.fs().Space(options_.dir);
  if (space) {
    out.set_total_bytes(space->total_bytes);
    out.set_free_bytes(space->free_bytes - std::min(space->free_bytes, options_.reserve_bytes));
  }
  co_return out;
}

Task<Result<MasterSession>> Registrar::Register() {
  proto::RegisterBeginRequest begin;
  begin.set_cluster(self_.cluster);
  begin.set_server(self_.server.value);
  begin.set_nonce(env_.RandomBytes(kNonceBytes));
  begin.set_protocol(kProtocol);
  auto challenge = co_await master_.Call<proto::RegisterBeginResponse>(proto::REGISTER_BEGIN, begin, kCallTimeout);
  if (!challenge) co_return Fail(std::move(challenge).error());
  if (!VerifyMasterProof(secret_, begin.nonce(), challenge->challenge(), self_.server, challenge->proof())) {
    co_return Fail(Error(Code::kPermissionDenied,
                         "the master at " + master_.endpoint().ToString() + " does not know this cluster's secret")
                       .WithNextStep("check the master's address, or copy the master's cluster secret here"));
  }

  proto::RegisterCompleteRequest complete;
  complete.set_server(self_.server.value);
  complete.set_incarnation(self_.incarnation.value);
  complete.set_proof(ChunkserverProof(secret_, challenge->challenge(), begin.nonce(), self_.server, self_.incarnation));
  complete.set_host(options_.advertise.host);
  complete.set_port(options_.advertise.port);
  complete.set_rack(options_.rack);
  complete.set_software(PICKET_VERSION);
  // The mark as it was: the master judges by it whether its metadata is the newest (F12).
  const EpochMark mark = state_.mark();
  complete.mutable_mark()->mutable_epoch()->set_number(mark.epoch.number);
  complete.mutable_mark()->mutable_epoch()->set_nonce(mark.epoch.nonce);
  complete.mutable_mark()->set_revision(mark.revision);
  *complete.mutable_space() = co_await Space();
  auto registered =
      co_await master_.Call<proto::RegisterCompleteResponse>(proto::REGISTER_COMPLETE, complete, kCallTimeout);
  if (!registered) co_return Fail(std::move(registered).error());

  const Epoch epoch{registered->epoch().number(), registered->epoch().nonce()};
  if (!PICKET_MUTANT(mark_before_report)) PICKET_CO_TRY(co_await state_.RaiseEpoch(epoch));
  state_.SeeRevision(epoch, registered->revision());
  if (registered->has_keys()) PICKET_CO_TRY(verifier_.Learn(registered->keys()));
  PICKET_CO_TRY(co_await ReportAll(registered->session()));
  MasterSession session;
  session.number = registered->session();
  if (registered->heartbeat_ms() > 0) session.heartbeat = std::chrono::milliseconds(registered->heartbeat_ms());
  co_return session;
}

Task<Status> Registrar::ReportAll(uint64_t session) {
  ChunkId after;
  for (uint64_t page = 0;; ++page) {
    proto::ChunkReportRequest report;
    report.set_server(self_.server.value);
    report.set_session(session);
    report.set_page(page);
    const auto replicas = store_.List(after, kPageReplicas);
    for (const ReplicaPtr& replica : replicas) {
      if (replica->busy() && !PICKET_MUTANT(report_settled)) {
        FifoLock::Ticket ticket = replica->lock().Enqueue();
        co_await ticket.Wait();
      }
      const ReplicaState state = replica->marks().state;
      if (state == ReplicaState::kNone || state == ReplicaState::kTombstone) continue;
      *report.add_replicas() = store_.Report(*replica, self_.incarnation);
    }
    const bool last = replicas.size() < kPageReplicas;
    report.set_last(last);
    for (int attempt = 1;; ++attempt) {
      auto taken = co_await master_.Call<proto::ChunkReportResponse>(proto::CHUNK_REPORT, report, kCallTimeout);
      if (taken) break;
      if (attempt == kPageAttempts || !IsRetryable(taken.error().code)) co_return Fail(std::move(taken).error());
    }
    if (last) co_return Status();
    after = replicas.back()->chunk;
  }
}

}  // namespace picket::cs
