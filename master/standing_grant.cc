#include "master/standing_grant.h"

#include <algorithm>

#include "common/base/mutation.h"

namespace picket {

Task<Result<FifoLock::Ticket>> StandingGrants::Turn(InodeId inode, Mono deadline) {
  std::erase_if(turns_, [](const auto& line) { return line.second.waiting() == 0; });
  FifoLock::Ticket ticket = turns_.try_emplace(inode, env_).first->second.Enqueue();
  co_await ticket.Wait();
  if (env_.Now() >= deadline) {
    co_return Fail(Code::kDeadlineExceeded, "others were asking for grants of file " + ToString(inode) + " all the time");
  }
  co_return std::move(ticket);
}

std::optional<proto::WriteGrant> StandingGrants::Find(const ChunkWriter& writer, Version held,
                                                      const std::vector<ServerId>& failed) const {
  auto record = attempts_.Admit(writer);
  if (!record || record->sealed() || record->minted() != record->current()) return std::nullopt;
  if (held.value >= record->current() || record->members().empty() || PICKET_MUTANT(shared_grant_reused)) {
    return std::nullopt;
  }
  const auto lease = leases_.Find(writer.chunk);
  if (!lease || lease->version.value != record->current()) return std::nullopt;
  for (const record::Member& member : record->members()) {
    if (std::ranges::find(failed, ServerId(member.server())) != failed.end()) return std::nullopt;
  }
  // Never what a replica reports: its last bytes may not be acknowledged, and be cut by the next attempt.
  return giver_.ToGrant(writer, *record, std::max(record->length(), lease->length));
}

Result<proto::WriteGrant> StandingGrants::Repeat(const std::string& kept) const {
  proto::WriteGrant grant;
  if (!grant.ParseFromString(kept)) return Fail(Code::kCorrupt, "a kept answer does not parse");
  const ChunkId chunk(grant.token().chunk());
  auto record = chunks_.Get(chunk);
  if (!record) return Fail(record.error());
  const uint64_t version = grant.token().version();
  const bool newest = *record && (*record)->inode() == grant.token().inode() && (*record)->current() == version &&
                      (*record)->minted() == version;
  if (!newest && !PICKET_MUTANT(kept_answer_current)) {
    return Fail(Error(Code::kSuperseded, "chunk " + ToString(chunk) + ": what was granted to this request is overtaken")
                    .WithTokens(version, *record ? (*record)->minted() : 0)
                    .WithNextStep("ask again with a new request"));
  }
  return grant;
}

}  // namespace picket
