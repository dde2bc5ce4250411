// What tests of lease recovery share: a file with one open chunk whose writer stalls, servers that lose, refuse
// or hold orders, and what a closed file must look like.
#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/unit/master/cluster_half.h"

namespace picket::test {

class RecoveryTest : public ClusterTest {
 protected:
  explicit RecoveryTest(size_t servers = 3) : ClusterTest(servers, Options()) {}
  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& line : world.log()) std::fprintf(stderr, "%s\n", line.c_str());
  }
  static MasterOptions Options() {
    MasterOptions o;
    o.soft_limit = 30s;
    o.hard_limit = 120s;
    return o;
  }
  // A file with one open chunk on every server.
  void Open(const std::string& bytes, const std::string& path = "/f") {
    file = Create(path);
    auto added = AddChunk(file);
    ASSERT_TRUE(added) << added.error().ToString();
    grant = *added;
    chunk = grant.token().chunk();
    Write(grant, bytes);
  }
  uint64_t server(int i) const { return grant.chain(i).server(); }
  sim::Node& node_of(uint64_t id) { return server_node(index_of(id)); }
  FakeReplica& At(uint64_t id) { return disk_of(id).replicas.at(chunk); }
  void Rule(uint64_t id, proto::Method method, FakeDisk::Act act, Code code = Code::kIoError) {
    FakeDisk::Rule rule;
    rule.method = method;
    rule.act = act;
    rule.error = Error(code, "as the test wants");
    rule.release = std::make_shared<bool>(false);
    disk_of(id).rules.push_back(rule);
  }
  std::shared_ptr<bool> Hold(uint64_t id, proto::Method method) {
    Rule(id, method, FakeDisk::Act::kHold);
    return disk_of(id).rules.back().release;
  }
  void Kill(uint64_t id) { node_of(id).Crash(sim::Node::Death::kProcess); }
  void Boot(uint64_t id) { StartServer(index_of(id)); }

  proto::RecoverLeaseRequest RecoverRequest(bool wait, const std::string& path = "/f") {
    proto::RecoverLeaseRequest r;
    Identify(r.mutable_mutation());
    r.set_path(path);
    r.set_wait(wait);
    return r;
  }
  Result<proto::RecoverLeaseResponse> Recover(bool wait = true, const std::string& path = "/f", Nanos timeout = 30s) {
    return Call<proto::RecoverLeaseResponse>(proto::RECOVER_LEASE, RecoverRequest(wait, path), timeout);
  }
  proto::ShowLeaseResponse Show(const std::string& path = "/f") {
    proto::ShowLeaseRequest r;
    r.set_path(path);
    auto shown = Call<proto::ShowLeaseResponse>(proto::SHOW_LEASE, r);
    EXPECT_TRUE(shown) << shown.error().ToString();
    return shown ? *shown : proto::ShowLeaseResponse();
  }
  bool AwaitClosed(Nanos limit, const std::string& path = "/f") {
    const Nanos end = world.now() + limit;
    while (world.now() < end) {
      auto seen = GetFile(path);
      if (seen && !seen->status().open()) return true;
      world.RunFor(100ms);
    }
    return false;
  }
  // The file is closed with exactly these bytes, on every one of `servers`.
  void ExpectClosed(const std::string& bytes, std::vector<uint64_t> servers, const std::string& path = "/f") {
    auto seen = GetFile(path);
    ASSERT_TRUE(seen) << seen.error().ToString();
    EXPECT_FALSE(seen->status().open());
    EXPECT_EQ(seen->status().length(), bytes.size());
    EXPECT_EQ(seen->status().stored_bytes(), bytes.size());
    ASSERT_EQ(seen->chunks_size(), 1);
    const proto::ChunkLocation& location = seen->chunks(0);
    EXPECT_TRUE(location.sealed());
    EXPECT_EQ(location.minted(), location.version());
    EXPECT_EQ(location.length(), bytes.size());
    EXPECT_EQ(location.digest(), DigestOf(bytes));
    std::vector<uint64_t> counted;
    for (const auto& replica : location.replicas()) counted.push_back(replica.hop().server());
    EXPECT_THAT(counted, testing::UnorderedElementsAreArray(servers));
    for (uint64_t id : servers) {
      const FakeReplica& replica = disk_of(id).replicas.at(location.chunk());
      EXPECT_EQ(replica.state, proto::SEALED) << id;
      EXPECT_EQ(replica.version, location.version()) << id;
      EXPECT_TRUE(replica.bytes == bytes) << id << " has " << replica.bytes.size() << " bytes";
    }
  }
  std::vector<uint64_t> All() const { return {server(0), server(1), server(2)}; }
  std::vector<ProtocolEvent> EventsOf(ProtocolEvent::Kind kind) const {
    std::vector<ProtocolEvent> out;
    std::ranges::copy_if(events, std::back_inserter(out), [&](const ProtocolEvent& e) { return e.kind == kind; });
    return out;
  }
  Result<proto::OpenResponse> OpenFor(uint64_t holder, const std::string& path = "/f",
                                      proto::SessionMode mode = proto::EXCLUSIVE, bool lock = false) {
    proto::OpenRequest r;
    r.mutable_mutation()->set_client(holder);
    r.mutable_mutation()->set_sequence(++sequence);
    r.mutable_mutation()->set_first_unacked(sequence);
    r.set_path(path);
    r.set_mode(mode);
    r.set_holder(holder);
    r.set_lock(lock);
    return Call<proto::OpenResponse>(proto::OPEN_FILE, r, 30s);
  }

  OpenFile file;
  proto::WriteGrant grant;
  uint64_t chunk = 0;
};

}  // namespace picket::test
