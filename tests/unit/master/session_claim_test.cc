// Who may have a file's write session: the pure judge.
#include "master/session_claim.h"

#include "tests/unit/master/metadata_half.h"

namespace picket::test {
namespace {

SessionTable::Session SessionOf(proto::SessionMode mode, std::vector<std::pair<uint64_t, std::string>> holders) {
  SessionTable::Session s;
  s.inode = InodeId(5);
  s.generation = Generation(1, 9);
  s.mode = mode;
  for (auto& [client, writer_id] : holders) s.holders.push_back({ClientId(client), writer_id, Mono(Nanos(100s))});
  s.soft_limit = 60s;
  s.hard_limit = 1200s;
  return s;
}

TEST(SessionClaim, WhoMayHaveTheFile) {
  using Way = Claim::Way;
  const auto E = proto::EXCLUSIVE, R = proto::RECORD_APPEND, S = proto::SHARED_LOCK;
  const auto one = [&](proto::SessionMode mode) { return SessionOf(mode, {{7, "w"}}); };
  auto recovering = one(E);
  recovering.recovering = true;
  auto nameless = SessionOf(E, {{7, ""}});
  auto two = SessionOf(R, {{7, "w"}, {8, "v"}});
  auto one_fresh = two;
  one_fresh.holders[1].renewed = Mono(Nanos(150s));
  auto both = SessionOf(R, {{7, "w"}, {8, "w"}});
  struct Case {
    std::string what;
    std::optional<SessionTable::Session> session;
    proto::SessionMode mode;
    uint64_t holder;
    std::string writer_id;
    Nanos silent;
    std::optional<Way> way;  // nothing: LEASE_CONFLICT
  };
  const Case cases[] = {
      {"nobody", {}, E, 9, "", 0s, Way::kFree},
      {"exclusive, exclusive", one(E), E, 9, "", 0s, {}},
      {"exclusive, records", one(E), R, 9, "", 0s, {}},
      {"exclusive, shared lock", one(E), S, 9, "", 0s, {}},
      {"records, exclusive", one(R), E, 9, "", 0s, {}},
      {"records, shared lock", one(R), S, 9, "", 0s, {}},
      {"shared lock, exclusive", one(S), E, 9, "", 0s, {}},
      {"shared lock, records", one(S), R, 9, "", 0s, {}},
      {"records, records", one(R), R, 9, "", 0s, Way::kJoin},
      {"records, records of the same writer", one(R), R, 9, "w", 0s, Way::kJoin},
      {"shared lock, shared lock", one(S), S, 9, "", 0s, Way::kJoin},
      {"a silent shared session is joined", one(R), R, 9, "", 600s, Way::kJoin},
      {"the holder itself", one(E), E, 7, "", 0s, {}},
      {"its own writer", one(E), E, 9, "w", 0s, Way::kTakeOver},
      {"its own writer, for records", one(E), R, 9, "w", 0s, Way::kTakeOver},
      {"another writer", one(E), E, 9, "v", 0s, {}},
      {"nameless writers are nobody's own", nameless, E, 9, "", 0s, {}},
      {"its own among others", two, E, 9, "w", 0s, {}},
      {"its own alone, twice", both, E, 9, "w", 0s, Way::kTakeOver},
      {"just before the soft limit", one(E), E, 9, "", 60s - 1ns, {}},
      {"at the soft limit", one(E), E, 9, "", 60s, Way::kTakeOver},
      {"all silent", two, E, 9, "", 60s, Way::kTakeOver},
      {"one of two renewed", one_fresh, E, 9, "", 60s, {}},
      {"in recovery", recovering, E, 9, "", 0s, Way::kAwait},
      {"in recovery, its own writer", recovering, R, 9, "w", 600s, Way::kAwait},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    SessionTable::Spec spec;
    spec.mode = c.mode;
    spec.holder = ClientId(c.holder);
    spec.writer_id = c.writer_id;
    auto claim = JudgeClaim(*Path::Parse("/f"), c.session ? &*c.session : nullptr, spec, Mono(Nanos(100s) + c.silent));
    ASSERT_EQ(claim.has_value(), c.way.has_value());
    if (claim) {
      EXPECT_EQ(claim->way, *c.way);
      EXPECT_EQ(claim->reason.empty(), *c.way != Way::kTakeOver);
      EXPECT_EQ(claim->own_writer, *c.way == Way::kTakeOver && c.silent == 0s);
      continue;
    }
    EXPECT_EQ(claim.error().code, Code::kLeaseConflict);
    EXPECT_EQ(claim.error().mark, Generation(1, 9).value);
    EXPECT_EQ(claim.error().holder, ToString(ClientId(7)));
    EXPECT_GT(claim.error().retry_after_ms + 1, 0u);
    EXPECT_TRUE(claim.error().message.contains("/f")) << claim.error().message;
    EXPECT_TRUE(claim.error().next_step.contains("picket lease recover /f")) << claim.error().next_step;
  }
}

TEST(SessionClaim, ASharedSessionHasABoundedNumberOfHolders) {
  auto session = SessionOf(proto::SHARED_LOCK, {});
  for (size_t i = 0; i < SessionTable::kMaxHolders; ++i) session.holders.push_back({ClientId(100 + i), "", Mono()});
  SessionTable::Spec spec;
  spec.mode = proto::SHARED_LOCK;
  spec.holder = ClientId(7);
  EXPECT_EQ(CodeOf(JudgeClaim(*Path::Parse("/f"), &session, spec, Mono())), Code::kLeaseConflict);
  spec.holder = ClientId(100);
  EXPECT_EQ(JudgeClaim(*Path::Parse("/f"), &session, spec, Mono())->way, Claim::Way::kJoin) << "it is counted already";
}

}  // namespace
}  // namespace picket::test
