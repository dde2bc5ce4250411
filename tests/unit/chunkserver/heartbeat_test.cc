// A chunkserver and a scripted master: registration, reports, heartbeats, and every way they fail.
#include "chunkserver/heartbeat.h"
#include "common/rpc/server.h"
#include "tests/unit/chunkserver/cluster.h"

namespace picket::cs {
namespace {

// What a master would remember; its answers are set by the test.
struct Master final : sim::Process {
  Master(Env& env, ClusterSecret s) : server(env), secret(std::move(s)) {
    server.Handle<proto::RegisterBeginRequest, proto::RegisterBeginResponse>(
        proto::REGISTER_BEGIN, [this](auto r, Mono) { return Begin(this, std::move(r)); });
    server.Handle<proto::RegisterCompleteRequest, proto::RegisterCompleteResponse>(
        proto::REGISTER_COMPLETE, [this](auto r, Mono) { return Complete(this, std::move(r)); });
    server.Handle<proto::ChunkReportRequest, proto::ChunkReportResponse>(
        proto::CHUNK_REPORT, [this](auto r, Mono) { return Report(this, std::move(r)); });
    server.Handle<proto::HeartbeatRequest, proto::HeartbeatResponse>(
        proto::HEARTBEAT, [this](auto r, Mono) { return Beat(this, std::move(r)); });
    EXPECT_TRUE(server.Start(Endpoint("", 7400)));
  }
  static Task<Result<proto::RegisterBeginResponse>> Begin(Master* m, proto::RegisterBeginRequest r) {
    ++m->begins;
    if (m->refuse != Code::kOk) co_return Fail(m->refuse, "refused by the test");
    m->nonce = r.nonce();
    proto::RegisterBeginResponse out;
    out.set_challenge(std::string(kNonceBytes, 'c'));
    out.set_proof(MasterProof(m->secret, r.nonce(), out.challenge(), ServerId(r.server())));
    co_return out;
  }
  static Task<Result<proto::RegisterCompleteResponse>> Complete(Master* m, proto::RegisterCompleteRequest r) {
    if (!VerifyChunkserverProof(m->secret, std::string(kNonceBytes, 'c'), m->nonce, ServerId(r.server()),
                                Incarnation(r.incarnation()), r.proof())) {
      co_return Fail(Code::kPermissionDenied, "bad proof");
    }
    m->last_registration = r;
    m->reported.clear();
    proto::RegisterCompleteResponse out;
    out.mutable_epoch()->set_number(m->epoch.number);
    out.mutable_epoch()->set_nonce(m->epoch.nonce);
    out.set_revision(50);
    out.set_session(++m->session);
    out.set_heartbeat_ms(1000);
    co_return out;
  }
  static Task<Result<proto::ChunkReportResponse>> Report(Master* m, proto::ChunkReportRequest r) {
    if (r.session() != m->session) co_return Fail(Code::kNotFound, "another session");
    for (const auto& replica : r.replicas()) m->reported.push_back(replica);
    ++m->reports;
    if (r.last()) ++m->full_reports;
    co_return proto::ChunkReportResponse();
  }
  static Task<Result<proto::HeartbeatResponse>> Beat(Master* m, proto::HeartbeatRequest r) {
    ++m->beats;
    if (m->refuse != Code::kOk) co_return Fail(m->refuse, "refused by the test");
    if (r.session() != m->session) co_return Fail(Code::kNotFound, "another session");
    for (const auto& c : r.changed()) m->changed[c.chunk()] = c;
    for (uint64_t chunk : r.removed()) m->removed.push_back(chunk);
    proto::HeartbeatResponse out;
    for (const auto& e : r.extensions()) {
      ++m->extensions;
      if (m->extend) *out.add_extended() = e;
    }
    out.mutable_epoch()->set_number(m->epoch.number);
    out.mutable_epoch()->set_nonce(m->epoch.nonce);
    out.set_revision(60);
    out.set_lease_ms(3000);
    out.set_report_again(std::exchange(m->report_again, false));
    m->key_ring = r.key_ring();
    if (m->keys.number() != r.key_ring() && m->keys.number() != 0) *out.mutable_keys() = m->keys;
    co_return out;
  }

  RpcServer server;
  ClusterSecret secret;
  Epoch epoch{3, 33};
  Code refuse = Code::kOk;
  bool extend = true;
  bool report_again = false;
  std::string nonce;
  proto::RegisterCompleteRequest last_registration;
  uint64_t session = 0;
  int begins = 0, reports = 0, full_reports = 0, beats = 0, extensions = 0;
  std::vector<proto::ReplicaReport> reported;
  std::map<uint64_t, proto::ReplicaReport> changed;
  std::vector<uint64_t> removed;
  proto::KeyRing keys;    // none: it says nothing of keys
  uint64_t key_ring = 0;  // that the last beat named
};

class HeartbeatTest : public testing::Test {
 protected:
  HeartbeatTest() : c_(1) {}
  void StartMaster() {
    c_.master.Start([this](Env& env) { return std::make_unique<Master>(env, c_.secret); });
    master_ = dynamic_cast<Master*>(c_.master.process());
  }
  void StopMaster() { c_.master.Crash(Node::Death::kProcess); }
  bool Registered() { return c_.Process(0)->server.registered(); }
  bool WaitRegistered(Nanos limit = 1min) {
    return c_.world.RunUntil([&] { return Registered(); }, limit);
  }
  Cluster c_;
  Master* master_ = nullptr;
};

TEST_F(HeartbeatTest, RegistersWithProofMarkAndReport) {
  c_.Open({0});
  StartMaster();
  ASSERT_TRUE(WaitRegistered());
  EXPECT_EQ(master_->last_registration.server(), c_.ids[0].value);
  EXPECT_EQ(master_->last_registration.incarnation(), c_.Hop(0).incarnation());
  EXPECT_EQ(master_->last_registration.host(), c_.nodes[0]->host());
  EXPECT_EQ(master_->last_registration.port(), kPort);
  EXPECT_EQ(master_->last_registration.mark().epoch().number(), 3u);
  EXPECT_EQ(master_->last_registration.mark().revision(), 100u);
  ASSERT_EQ(master_->reported.size(), 1u);
  EXPECT_EQ(master_->reported[0].chunk(), kChunk);
  EXPECT_EQ(master_->reported[0].state(), proto::OPEN);
  EXPECT_TRUE(master_->reported[0].clean());
}

// F13: the delete was judged by the mark of its time, and the new master must not count what it takes away.
TEST_F(HeartbeatTest, ADeleteThatIsUnderWayIsReportedAsDone) {
  c_.Open({0});
  StartMaster();
  ASSERT_TRUE(WaitRegistered());
  proto::DeleteReplicaRequest order;
  *order.mutable_header() = c_.Header(0);
  order.set_chunk(kChunk);
  order.set_version(kFirst.value);
  order.set_instance(c_.Describe(0).replica().instance());
  c_.nodes[0]->disk().faults.extra_latency = 1s;
  auto channel = c_.channels->Get(Endpoint(c_.nodes[0]->host(), kPort));
  auto deleted = channel->Start(proto::DELETE_REPLICA, order.SerializeAsString(), Payload(), 30s);
  master_->reported.clear();
  master_->report_again = true;
  ASSERT_TRUE(c_.world.RunUntil([&] { return master_->full_reports == 2; }, 1min));
  EXPECT_TRUE(master_->reported.empty());
  auto answer = RunTask(c_.world, c_.outside, deleted->Wait());
  ASSERT_TRUE(answer && *answer);
}

// F18: a key that is not known yet is fetched at once, and named in the beat after that.
TEST_F(HeartbeatTest, AnUnknownTokenKeyBringsTheNextBeatForward) {
  c_.Open({0});
  StartMaster();
  ASSERT_TRUE(WaitRegistered());
  c_.world.RunFor(Heartbeat::kSoonest * 3 / 2);
  c_.LearnKey(kTokenKey + 1);
  master_->keys = c_.ring;
  const int before = master_->beats;
  proto::WritePacketRequest r = c_.Packet(0, 1, 0, "aaaa");
  c_.Sign(r.mutable_token(), kTokenKey + 1);
  auto send = [&] { return c_.Call<proto::WritePacketResponse>(0, proto::WRITE_PACKET, r, Buffer::Copy("aaaa")); };
  EXPECT_EQ(CodeOf(send()), Code::kTokenExpired);
  c_.world.RunFor(Heartbeat::kSoonest + 50ms);
  EXPECT_EQ(master_->beats, before + 1);
  EXPECT_TRUE(send());
  ASSERT_TRUE(c_.world.RunUntil([&] { return master_->key_ring == c_.ring.number(); }, 3s));

  // Many of them do not make many beats.
  c_.Sign(r.mutable_token(), kTokenKey + 2);
  const int quiet = master_->beats;
  const Nanos end = c_.world.now() + 2s;
  while (c_.world.now() < end) EXPECT_EQ(CodeOf(send()), Code::kTokenExpired);
  EXPECT_LE(master_->beats - quiet, 2s / Heartbeat::kSoonest + 1);
}

TEST_F(HeartbeatTest, TheEpochIsMarkedBeforeTheFirstReport) {  // F13
  StartMaster();
  master_->epoch = Epoch{7, 77};
  c_.world.RunUntil([&] { return master_->reports > 0; }, 1min);
  c_.Restart(0, Node::Death::kPower);
  auto hello = c_.Call<proto::HelloResponse>(0, proto::HELLO, proto::HelloRequest());
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->epoch().number(), 7u);
  EXPECT_EQ(CodeOf(c_.Create(0)), Code::kStaleEpoch);  // the old master's order, epoch 3
}

TEST_F(HeartbeatTest, ResolvesEveryKindOfFailureByItself) {  // HDFS-7009
  for (Code refusal : {Code::kUnavailable, Code::kWrongCluster, Code::kHistoryLost, Code::kPermissionDenied,
                       Code::kInternal, Code::kSafeMode, Code::kNotFound}) {
    StartMaster();
    master_->refuse = refusal;
    c_.world.RunFor(30s);
    EXPECT_FALSE(Registered());
    EXPECT_GT(master_->begins, 1);
    EXPECT_LT(master_->begins, 60);  // and does not hammer
    master_->refuse = Code::kOk;
    EXPECT_TRUE(WaitRegistered()) << CodeName(refusal);
    StopMaster();
    c_.world.RunFor(20s);
  }
}

TEST_F(HeartbeatTest, AMasterThatDoesNotKnowTheSecretIsNotBelieved) {
  StartMaster();
  master_->secret.key = std::string(kSecretBytes, 'x');
  master_->epoch = Epoch{99, 1};
  c_.world.RunFor(20s);
  EXPECT_FALSE(Registered());
  auto hello = c_.Call<proto::HelloResponse>(0, proto::HELLO, proto::HelloRequest());
  EXPECT_EQ(hello->epoch().number(), 0u);
}

TEST_F(HeartbeatTest, AnOlderMasterIsRefused) {
  StartMaster();
  master_->epoch = Epoch{5, 55};
  ASSERT_TRUE(WaitRegistered());
  StopMaster();
  StartMaster();
  master_->epoch = Epoch{4, 44};
  c_.world.RunFor(30s);
  EXPECT_FALSE(Registered());
  EXPECT_EQ(master_->reports, 0);
  StopMaster();
  StartMaster();
  master_->epoch = Epoch{5, 56};
  c_.world.RunFor(30s);
  EXPECT_FALSE(Registered());
  EXPECT_EQ(master_->reports, 0);
}

TEST_F(HeartbeatTest, RegistersAgainWhenTheSessionIsLost) {
  StartMaster();
  ASSERT_TRUE(WaitRegistered());
  const uint64_t before = master_->session;
  ++master_->session;  // as after the master's restart
  c_.world.RunUntil([&] { return master_->session > before + 1 && Registered(); }, 1min);
  EXPECT_EQ(master_->session, before + 2);
  EXPECT_EQ(master_->full_reports, 2);
}

TEST_F(HeartbeatTest, ServesWithoutAMaster) {
  c_.Open({0});
  StartMaster();
  ASSERT_TRUE(WaitRegistered());
  StopMaster();
  c_.world.RunFor(20s);
  EXPECT_TRUE(c_.Write(0, 1, 0, "aaaa"));
  EXPECT_EQ(c_.Read(0, 0, 10)->bytes, "aaaa");
}

TEST_F(HeartbeatTest, TellsWhatChangedUntilItIsHeard) {
  StartMaster();
  ASSERT_TRUE(WaitRegistered());
  master_->refuse = Code::kUnavailable;
  c_.Open({0});
  ASSERT_TRUE(c_.Write(0, 1, 0, "aaaa"));
  ASSERT_TRUE(c_.Seal(0, 4));
  c_.world.RunFor(10s);
  EXPECT_TRUE(master_->changed.empty());
  master_->refuse = Code::kOk;
  c_.world.RunFor(15s);
  ASSERT_TRUE(master_->changed.contains(kChunk));
  EXPECT_EQ(master_->changed[kChunk].state(), proto::SEALED);
  EXPECT_EQ(master_->changed[kChunk].length(), 4u);
  ASSERT_TRUE(c_.Delete(0, kFirst, c_.Describe(0).replica().instance()));
  c_.world.RunFor(5s);
  EXPECT_EQ(master_->removed, std::vector<uint64_t>{kChunk});
}

TEST_F(HeartbeatTest, ReportsAgainWhenAsked) {
  c_.Open({0});
  StartMaster();
  ASSERT_TRUE(WaitRegistered());
  master_->reported.clear();
  master_->report_again = true;
  c_.world.RunFor(5s);
  EXPECT_EQ(master_->reported.size(), 1u);
}

TEST_F(HeartbeatTest, ExtendsTheLeasesThatAreUsed) {
  StartMaster();
  ASSERT_TRUE(WaitRegistered());
  ASSERT_TRUE(c_.Create(0));
  ASSERT_TRUE(c_.Grant({0}, kFirst, 3000));
  uint64_t serial = 0;
  for (int i = 0; i < 12; ++i) {
    auto written = c_.Write(0, serial + 1, serial * 4, "aaaa");
    ASSERT_TRUE(written) << i << ": " << written.error().ToString();
    ++serial;
    c_.world.RunFor(1s);
  }
  EXPECT_GT(master_->extensions, 5);
  master_->extend = false;
  c_.world.RunFor(4s);
  EXPECT_EQ(CodeOf(c_.Write(0, serial + 1, serial * 4, "aaaa")), Code::kNotPrimary);
}

TEST_F(HeartbeatTest, AnotherBootReportsItsReplicasAsUnclean) {
  c_.Open({0});
  StartMaster();
  ASSERT_TRUE(WaitRegistered());
  c_.Restart(0, Node::Death::kProcess);
  ASSERT_TRUE(c_.world.RunUntil([&] { return master_->full_reports == 2; }, 1min));
  ASSERT_EQ(master_->reported.size(), 1u);
  EXPECT_FALSE(master_->reported[0].clean());
}

}  // namespace
}  // namespace picket::cs
