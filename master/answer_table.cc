#include "master/answer_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/ids.h"
#include "common/base/mutation.h"
#include "common/obs/log.h"
#include "master/keys.h"

namespace picket {
namespace {

constexpr Nanos kSweepPeriod = 1h;
// More forgotten sequences than this are looked up instead of removed one by one.
constexpr uint64_t kMaxBlindRemovals = 64;

std::string Describe(const proto::MutationId& m) {
  return fmt::format("mutation {} of client {}", m.sequence(), ToHex(m.client()));
}

}  // namespace

AnswerTable::AnswerTable(Env& env, MetaStore& store) : env_(env), store_(store), done_(env) {}

AnswerTable::InFlight::~InFlight() {
  if (token_) table_->Leave(client_, sequence_);
}

void AnswerTable::Leave(uint64_t client, uint64_t sequence) {
  in_flight_.erase({client, sequence});
  done_.NotifyAll();
}

AnswerTable::Client& AnswerTable::Seen(const proto::MutationId& mutation) {
  auto [it, fresh] = clients_.try_emplace(mutation.client());
  Client& client = it->second;
  if (!fresh) recent_.erase(client.recent);
  recent_.push_front(mutation.client());
  client.recent = recent_.begin();
  if (mutation.first_unacked() > client.first_unacked) {
    client.first_unacked = mutation.first_unacked();
    client.refused.erase(client.refused.begin(), client.refused.lower_bound(client.first_unacked));
  }
  if (clients_.size() > kMaxClientsInMemory) {
    clients_.erase(recent_.back());
    recent_.pop_back();
  }
  return client;
}

// Answers below it are forgotten.
Result<uint64_t> AnswerTable::Mark(uint64_t client) {
  auto row = store_.Get(keys::Answer(client, 0));
  if (!row) return Fail(row.error());
  return *row ? keys::DecodeU64(**row) : 0;
}

Task<Result<AnswerTable::Admission>> AnswerTable::Admit(proto::MutationId mutation, proto::Method method) {
  if (mutation.client() == 0 || mutation.sequence() == 0 || mutation.first_unacked() > mutation.sequence()) {
    co_return Fail(Code::kInvalidArgument,
                   "a change needs a mutation id: client, sequence, and first_unacked not above sequence");
  }
  const std::pair key(mutation.client(), mutation.sequence());
  while (in_flight_.contains(key)) co_await done_.Wait();

  const Client& client = Seen(mutation);
  if (auto refused = client.refused.find(mutation.sequence()); refused != client.refused.end()) {
    co_return Fail(refused->second);
  }
  auto mark = Mark(mutation.client());
  if (!mark) co_return Fail(mark.error());
  const uint64_t forgotten = std::max(*mark, client.first_unacked);
  if (mutation.sequence() < forgotten && !PICKET_MUTANT(answer_forgotten)) {
    co_return Fail(Code::kDedupWindowExceeded,
                   fmt::format("{} is over: answers below {} are forgotten", Describe(mutation), forgotten));
  }
  auto answer = store_.GetAs<record::Answer>(keys::Answer(mutation.client(), mutation.sequence()));
  if (!answer) co_return Fail(answer.error());
  Admission admission;
  if (*answer && !PICKET_MUTANT(answer_repeated)) {
    if ((*answer)->method() != static_cast<uint32_t>(method)) {
      co_return Fail(Code::kConflict, fmt::format("{} was a {}, and comes again as a {}", Describe(mutation),
                                                  proto::Method_Name(static_cast<proto::Method>((*answer)->method())),
                                                  proto::Method_Name(method)));
    }
    admission.answer = std::move(*(*answer)->mutable_body());
    PICKET_CO_TRY(co_await store_.ReadBarrier());
    co_return admission;
  }
  // What changes memory before it stages must not begin when nothing can be staged.
  PICKET_CO_TRY(store_.CheckWritable());
  admission.guard.table_ = this;
  admission.guard.token_ = std::make_shared<int>(0);
  admission.guard.client_ = mutation.client();
  admission.guard.sequence_ = mutation.sequence();
  in_flight_[key] = admission.guard.token_;
  co_return admission;
}

void AnswerTable::Remember(Batch* batch, const proto::MutationId& mutation, proto::Method method,
                           std::string response) {
  const uint64_t client = mutation.client();
  const uint64_t sequence = mutation.sequence();
  const uint64_t old_mark = Mark(client).value_or(0);
  if (sequence < old_mark) return;  // given up by the client in the meantime
  const uint64_t oldest = sequence > kMaxAnswersPerClient ? sequence - kMaxAnswersPerClient + 1 : 0;
  const uint64_t mark = std::max({old_mark, std::min(mutation.first_unacked(), sequence), oldest});
  record::Answer answer;
  answer.set_method(method);
  answer.set_body(std::move(response));
  answer.set_wall_ns(env_.WallNanos());
  batch->Put(keys::Answer(client, sequence), answer);
  if (mark == old_mark) return;
  batch->Put(keys::Answer(client, 0), keys::EncodeU64(mark));
  if (mark - old_mark <= kMaxBlindRemovals) {
    for (uint64_t s = std::max<uint64_t>(old_mark, 1); s < mark; ++s) batch->Remove(keys::Answer(client, s));
    return;
  }
  auto rows = store_.Scan(keys::Answers(client), keys::Answer(client, 0), kMaxAnswersPerClient);
  if (!rows) return;  // they stay until the sweep
  for (const MetaRow& row : *rows) {
    if (keys::LastNumber(row.key) < mark) batch->Remove(row.key);
  }
}

void AnswerTable::Refuse(const proto::MutationId& mutation, const Error& error) {
  if (IsRetryable(error.code)) return;  // the same mutation may come again, and succeed
  Client& client = Seen(mutation);
  if (mutation.sequence() < client.first_unacked) return;
  client.refused.insert_or_assign(mutation.sequence(), error);
  if (client.refused.size() > kMaxRefusalsPerClient) client.refused.erase(client.refused.begin());
}

Task<> AnswerTable::SweepLoop() {
  for (;;) {
    co_await env_.Sleep(kSweepPeriod);
    auto swept = co_await Sweep();
    if (!swept) PICKET_LOG(env_, kWarning, "forgetting old answers: {}", swept.error().ToString());
    if (store_.failed()) co_return;
  }
}

Task<Status> AnswerTable::Sweep() {
  const int64_t oldest = env_.WallNanos() - kKeepNanos;
  std::string after;
  for (;;) {
    auto next = store_.Scan(keys::kAnswers, after, 1);
    if (!next) co_return Fail(next.error());
    if (next->empty()) co_return Status();
    const uint64_t client = keys::NumberBeforeLast(next->front().key);
    after = keys::Answer(client, ~uint64_t{0});
    auto rows = store_.Scan(keys::Answers(client), "", kMaxAnswersPerClient + 1);
    if (!rows) co_return Fail(rows.error());
    const bool idle = std::ranges::all_of(*rows, [&](const MetaRow& row) {
      record::Answer answer;
      return keys::LastNumber(row.key) == 0 || !answer.ParseFromString(row.value) || answer.wall_ns() < oldest;
    });
    if (!idle) continue;
    Batch batch;
    for (const MetaRow& row : *rows) batch.Remove(row.key);
    auto committed = co_await store_.Commit(std::move(batch));
    if (!committed) co_return Fail(committed.error());
  }
}

}  // namespace picket
