// What an operator sees of a quarantine, brings back and lets go.
#include <gmock/gmock.h>

#include "tests/unit/master/cluster_half.h"

namespace picket::test {
namespace {

using testing::HasSubstr;

MasterOptions Eager() {
  MasterOptions o;
  o.stale_interval = 1s;
  o.stale_settle = 2s;
  return o;
}

class QuarantineServiceTest : public ClusterTest {
 protected:
  QuarantineServiceTest() : ClusterTest(4, Eager()) {
    file = Create("/f");
    auto added = AddChunk(file);
    EXPECT_TRUE(added);
    grant = *added;
    Write(grant, "sealed bytes");
    proto::CommitSealRequest seal = Seal(file, grant);
    seal.set_close(true);
    EXPECT_TRUE(CommitSeal(seal));
    chunk = grant.token().chunk();
    at = index_of(ServersOf(grant)[0]);
  }
  // Puts a server's good replica into its quarantine, and has it say so.
  std::string Set(size_t i) {
    const std::string name = ToHex(chunk) + "." + ToHex(replica(i, chunk).instance);
    disk(i).quarantine[name] = {chunk, replica(i, chunk)};
    disk(i).replicas.erase(chunk);
    server_node(i).Crash(sim::Node::Death::kProcess);
    StartServer(i);
    world.RunUntil([&] { return Counted() == 2 || disk(i).replicas.empty(); }, 10s);
    world.RunFor(2s);
    return name;
  }
  size_t Counted() {
    size_t n = 0;
    for (const auto& r : Chunk(chunk).replicas()) n += r.counted() ? 1 : 0;
    return n;
  }
  Result<proto::QuarantineResponse> Ask(proto::QuarantineRequest::Action action, std::vector<std::string> names = {},
                                        bool force = false) {
    request.Clear();
    request.set_server(disk(at).id.value);
    request.set_action(action);
    for (auto& name : names) request.add_entries(name);
    request.set_force(force);
    Identify(request.mutable_mutation());
    return Call<proto::QuarantineResponse>(proto::QUARANTINE, request);
  }
  OpenFile file;
  proto::WriteGrant grant;
  uint64_t chunk = 0;
  size_t at = 0;
  proto::QuarantineRequest request;
};

TEST_F(QuarantineServiceTest, ListNamesPathAndLastHope) {
  const std::string name = Set(at);
  auto listed = Ask(proto::QuarantineRequest::LIST);
  ASSERT_TRUE(listed) << listed.error().ToString();
  ASSERT_EQ(listed->entries_size(), 1);
  EXPECT_EQ(listed->entries(0).name(), name);
  EXPECT_EQ(listed->entries(0).path(), "/f");
  EXPECT_FALSE(listed->entries(0).last_hope());
  for (size_t i = 0; i < 4; ++i) {
    if (i != at && disk(i).replicas.contains(chunk)) Set(i);
  }
  listed = Ask(proto::QuarantineRequest::LIST);
  ASSERT_TRUE(listed);
  EXPECT_TRUE(listed->entries(0).last_hope());
}

TEST_F(QuarantineServiceTest, ARestoredReplicaIsJudgedAsAnyOther) {
  const std::string name = Set(at);
  ASSERT_EQ(Counted(), 2u);
  auto restored = Ask(proto::QuarantineRequest::RESTORE, {name});
  ASSERT_TRUE(restored) << restored.error().ToString();
  EXPECT_EQ(restored->entries(0).refused(), "");
  EXPECT_EQ(Counted(), 3u);
  // A retry is answered again, and restores nothing twice.
  auto again = Call<proto::QuarantineResponse>(proto::QUARANTINE, request);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->SerializeAsString(), restored->SerializeAsString());
  auto gone = Ask(proto::QuarantineRequest::RESTORE, {name});
  ASSERT_TRUE(gone);
  EXPECT_THAT(gone->entries(0).refused(), HasSubstr("not in this quarantine"));
}

TEST_F(QuarantineServiceTest, TheLastHopeIsPurgedByForceOnly) {
  const std::string name = Set(at);
  auto purged = Ask(proto::QuarantineRequest::PURGE);
  ASSERT_TRUE(purged) << purged.error().ToString();
  EXPECT_THAT(purged->entries(0).refused(), HasSubstr("fewer than its goal"));
  EXPECT_EQ(disk(at).quarantine.size(), 1u);
  purged = Ask(proto::QuarantineRequest::PURGE, {name}, true);
  ASSERT_TRUE(purged);
  EXPECT_EQ(purged->entries(0).refused(), "");
  EXPECT_TRUE(disk(at).quarantine.empty());
}

TEST_F(QuarantineServiceTest, WhatNobodyMissesIsPurged) {
  // A copy more than the goal.
  disk(at).quarantine["x"] = {chunk, replica(at, chunk)};
  auto purged = Ask(proto::QuarantineRequest::PURGE);
  ASSERT_TRUE(purged) << purged.error().ToString();
  EXPECT_EQ(purged->entries(0).refused(), "");
  EXPECT_TRUE(disk(at).quarantine.empty());
  request.set_server(4242);
  Identify(request.mutable_mutation());
  auto nobody = Call<proto::QuarantineResponse>(proto::QUARANTINE, request);
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace picket::test
