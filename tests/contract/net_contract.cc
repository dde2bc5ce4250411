// Connections that carry frames, between nodes without faults.
#include "tests/contract/env_fixture.h"

#include <vector>

#include "common/env/one_shot.h"
#include "common/env/sync.h"

namespace picket::contract {
namespace {

constexpr Nanos kConnectTimeout = 5s;

using Conn = std::unique_ptr<FrameConn>;

// A listener on node 1 and the two ends of one connection from node 0 to it.
struct Pair {
  std::unique_ptr<Listener> listener;
  Conn client;
  Conn server;
};

Task<> AcceptInto(Listener* listener, Conn* out, OneShot<>* done) {
  auto accepted = co_await listener->Accept();
  EXPECT_TRUE(accepted) << accepted.error().ToString();
  if (accepted) *out = std::move(*accepted);
  done->Set();
}

// Both ends, or the test has failed.
Task<bool> Connect(EnvFixture* f, Pair* out) {
  auto listening = f->env(1).net().Listen(Endpoint(f->host(1), 0));
  EXPECT_TRUE(listening) << listening.error().ToString();
  if (!listening) co_return false;
  out->listener = std::move(*listening);
  EXPECT_NE(out->listener->port(), 0);
  OneShot<> accepted(f->env(0));
  f->env(1).Spawn(AcceptInto(out->listener.get(), &out->server, &accepted));
  auto client = co_await f->env(0).net().Connect(Endpoint(f->host(1), out->listener->port()), kConnectTimeout);
  EXPECT_TRUE(client) << client.error().ToString();
  if (!client) co_return false;
  out->client = std::move(*client);
  co_await accepted.Wait();
  co_return out->server != nullptr;
}

Buffer Pattern(size_t size, uint32_t seed) {
  Buffer b = Buffer::Allocate(size);
  for (size_t i = 0; i < size; ++i) b.data()[i] = static_cast<std::byte>((i * 31 + seed + (i >> 8)) & 0xff);
  return b;
}

void ExpectFrame(const Result<Frame>& got, std::string_view header, std::string_view payload) {
  EXPECT_TRUE(got) << got.error().ToString();
  if (!got) return;
  EXPECT_TRUE(got->header == header) << got->header.size() << " bytes instead of " << header.size();
  EXPECT_EQ(got->payload.file(), nullptr);
  EXPECT_TRUE(got->payload.buffer().view() == payload) << got->payload.size() << " bytes instead of " << payload.size();
}

Task<> Sizes(EnvFixture* f) {
  Pair p;
  if (!co_await Connect(f, &p)) co_return;
  const std::vector<std::pair<size_t, size_t>> sizes = {
      {0, 0}, {1, 0}, {0, 1}, {100, 100}, {20'000, 0}, {16'368, 0}, {16'384, 16'384}, {100, 65'536},
      {300'000, 300'000}, {kMaxFrameHeader, kMaxFramePayload}, {5, kMaxFramePayload}, {1, 1}};
  for (const auto& [header, payload] : sizes) {
    const std::string h(header, 'h');
    const Buffer data = Pattern(payload, static_cast<uint32_t>(header));
    EXPECT_TRUE(p.client->Send(Frame(h, data)));
    const auto there = co_await p.server->Recv();
    ExpectFrame(there, h, data.view());
    if (!there) co_return;
    EXPECT_TRUE(p.server->Send(Frame(there->header, there->payload)));
    const auto back = co_await p.client->Recv();
    ExpectFrame(back, h, data.view());
    if (!back) co_return;
  }
}
TEST_P(NetContract, FramesOfEverySizeBothWays) { RunTask(Sizes(fixture_.get())); }

Task<> Order(EnvFixture* f) {
  Pair p;
  if (!co_await Connect(f, &p)) co_return;
  constexpr uint32_t kCount = 2000;
  for (uint32_t i = 0; i < kCount; ++i) {
    EXPECT_TRUE(p.client->Send(Frame(std::to_string(i), Pattern((i * 7919) % 5000, i))));
  }
  for (uint32_t i = 0; i < kCount; ++i) {
    const auto got = co_await p.server->Recv();
    ExpectFrame(got, std::to_string(i), Pattern((i * 7919) % 5000, i).view());
    if (!got) co_return;
  }
}
TEST_P(NetContract, FramesArriveInOrder) { RunTask(Order(fixture_.get())); }

Task<> SendCount(FrameConn* conn, uint32_t count, uint32_t seed, bool* done) {
  for (uint32_t i = 0; i < count; ++i) {
    EXPECT_TRUE(conn->Send(Frame(std::to_string(i), Pattern(100'000, i + seed))));
    co_await conn->Drained(200'000);
  }
  *done = true;
}
Task<Unit> ReceiveCount(FrameConn* conn, uint32_t count, uint32_t seed) {
  for (uint32_t i = 0; i < count; ++i) {
    const auto got = co_await conn->Recv();
    ExpectFrame(got, std::to_string(i), Pattern(100'000, i + seed).view());
    if (!got) break;
  }
  co_return Unit();
}
Task<> BothWays(EnvFixture* f) {
  Pair p;
  if (!co_await Connect(f, &p)) co_return;
  bool done[2] = {};
  f->env(0).Spawn(SendCount(p.client.get(), 100, 0, &done[0]));
  f->env(1).Spawn(SendCount(p.server.get(), 100, 7, &done[1]));
  std::vector<Task<Unit>> readers;
  readers.push_back(ReceiveCount(p.server.get(), 100, 0));
  readers.push_back(ReceiveCount(p.client.get(), 100, 7));
  co_await WhenAll(&f->env(0), std::move(readers));
  EXPECT_TRUE(done[0] && done[1]);
}
TEST_P(NetContract, BothDirectionsAtOnceWithBackPressure) { RunTask(BothWays(fixture_.get())); }

Task<> QueueGrows(EnvFixture* f) {
  Pair p;
  if (!co_await Connect(f, &p)) co_return;
  co_await p.client->Drained(0);
  EXPECT_EQ(p.client->QueuedBytes(), 0u);
  const Buffer data = Pattern(kMaxFramePayload, 1);
  EXPECT_TRUE(p.client->Send(Frame("h", data)));
  EXPECT_GE(p.client->QueuedBytes(), data.size()) << "Send went to the kernel inside the call";
  constexpr int kCount = 64;  // more than any socket buffer takes
  for (int i = 1; i < kCount; ++i) EXPECT_TRUE(p.client->Send(Frame("h", data)));
  bool drained = false;
  struct Waiter {
    static Task<> Run(FrameConn* conn, bool* out) {
      co_await conn->Drained(0);
      EXPECT_EQ(conn->QueuedBytes(), 0u);
      *out = true;
    }
  };
  f->env(0).Spawn(Waiter::Run(p.client.get(), &drained));
  for (int i = 0; i < kCount; ++i) {
    const auto got = co_await p.server->Recv();
    ExpectFrame(got, "h", data.view());
    if (!got) co_return;
  }
  co_await p.client->Drained(0);
  co_await f->env(0).Sleep(1ms);
  EXPECT_TRUE(drained);
}
TEST_P(NetContract, QueuedBytesAndDrained) { RunTask(QueueGrows(fixture_.get())); }

Task<> PeerCloses(EnvFixture* f) {
  Pair p;
  if (!co_await Connect(f, &p)) co_return;
  EXPECT_TRUE(p.client->Send(Frame("last words", Pattern(200'000, 9))));
  co_await p.client->Drained(0);
  p.client->Close();
  p.client->Close();
  EXPECT_FALSE(p.client->Send(Frame("no", Payload())));
  const auto own = co_await p.client->Recv();
  EXPECT_EQ(own.error().code, Code::kConnectionLost);
  const auto got = co_await p.server->Recv();
  ExpectFrame(got, "last words", Pattern(200'000, 9).view());
  for (int i = 0; i < 2; ++i) {
    const auto end = co_await p.server->Recv();
    EXPECT_FALSE(end);
    if (!end) EXPECT_EQ(end.error().code, Code::kConnectionLost);
  }
}
TEST_P(NetContract, CloseDeliversWhatHasLeft) { RunTask(PeerCloses(fixture_.get())); }

Task<> ReceiveError(FrameConn* conn, OneShot<Code>* out) {
  const auto got = co_await conn->Recv();
  out->Set(got ? Code::kOk : got.error().code);
}
Task<> CloseWakesReceiver(EnvFixture* f) {
  Pair p;
  if (!co_await Connect(f, &p)) co_return;
  OneShot<Code> ended(f->env(0));
  f->env(0).Spawn(ReceiveError(p.client.get(), &ended));
  co_await f->env(0).Sleep(2ms);
  EXPECT_FALSE(ended.done());
  p.client->Close();
  EXPECT_EQ(co_await ended.Wait(), Code::kConnectionLost);
}
TEST_P(NetContract, CloseEndsAPendingRecv) { RunTask(CloseWakesReceiver(fixture_.get())); }

Task<> WaitDrained(FrameConn* conn, OneShot<>* out) {
  co_await conn->Drained(0);
  out->Set();
}
Task<> CloseWakesDrained(EnvFixture* f) {
  Pair p;
  if (!co_await Connect(f, &p)) co_return;
  const Buffer data = Pattern(kMaxFramePayload, 1);
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(p.client->Send(Frame("h", data)));
  OneShot<> ended(f->env(0));
  f->env(0).Spawn(WaitDrained(p.client.get(), &ended));
  co_await f->env(0).Sleep(2ms);
  p.client->Close();
  co_await ended.Wait();
}
TEST_P(NetContract, CloseEndsAPendingDrained) { RunTask(CloseWakesDrained(fixture_.get())); }

Task<> SendToTheGone(EnvFixture* f) {
  Pair p;
  if (!co_await Connect(f, &p)) co_return;
  p.server->Close();
  const auto end = co_await p.client->Recv();
  EXPECT_FALSE(end);
  EXPECT_FALSE(p.client->Send(Frame("h", Payload())));
  co_await p.client->Drained(0);
}
TEST_P(NetContract, SendIsFalseOnceTheBreakIsKnown) { RunTask(SendToTheGone(fixture_.get())); }

Task<> HandleDies(EnvFixture* f) {
  Pair p;
  if (!co_await Connect(f, &p)) co_return;
  p.server.reset();
  const auto end = co_await p.client->Recv();
  EXPECT_FALSE(end);
  if (!end) EXPECT_EQ(end.error().code, Code::kConnectionLost);
}
TEST_P(NetContract, DestroyingTheHandleCloses) { RunTask(HandleDies(fixture_.get())); }

Task<> Refused(EnvFixture* f) {
  uint16_t port = 0;
  {
    auto listening = f->env(1).net().Listen(Endpoint(f->host(1), 0));
    EXPECT_TRUE(listening);
    if (!listening) co_return;
    port = (*listening)->port();
  }
  const auto conn = co_await f->env(0).net().Connect(Endpoint(f->host(1), port), kConnectTimeout);
  EXPECT_FALSE(conn);
  if (!conn) {
    EXPECT_EQ(conn.error().code, Code::kUnavailable);
    EXPECT_NE(conn.error().message.find(std::to_string(port)), std::string::npos) << conn.error().message;
  }
}
TEST_P(NetContract, ConnectToNobodyIsUnavailable) { RunTask(Refused(fixture_.get())); }

Task<> ListenTwice(EnvFixture* f) {
  auto first = f->env(1).net().Listen(Endpoint(f->host(1), 0));
  EXPECT_TRUE(first);
  if (!first) co_return;
  const uint16_t port = (*first)->port();
  EXPECT_FALSE(f->env(1).net().Listen(Endpoint(f->host(1), port)));
  first->reset();
  const auto again = f->env(1).net().Listen(Endpoint(f->host(1), port));
  EXPECT_TRUE(again) << again.error().ToString();
}
TEST_P(NetContract, APortIsTakenOnceAndFreeAgainAfterwards) { RunTask(ListenTwice(fixture_.get())); }

Task<> AcceptError(Listener* listener, OneShot<bool>* out) {
  const auto got = co_await listener->Accept();
  out->Set(got.has_value());
}
Task<> CloseListener(EnvFixture* f) {
  auto listening = f->env(0).net().Listen(Endpoint(f->host(0), 0));
  EXPECT_TRUE(listening);
  if (!listening) co_return;
  OneShot<bool> ended(f->env(0));
  f->env(0).Spawn(AcceptError(listening->get(), &ended));
  co_await f->env(0).Sleep(2ms);
  EXPECT_FALSE(ended.done());
  (*listening)->Close();
  EXPECT_FALSE(co_await ended.Wait());
  const auto later = co_await (*listening)->Accept();
  EXPECT_FALSE(later);
}
TEST_P(NetContract, CloseEndsAPendingAccept) { RunTask(CloseListener(fixture_.get())); }

Task<> ListenerDies(EnvFixture* f) {
  auto listening = f->env(0).net().Listen(Endpoint(f->host(0), 0));
  EXPECT_TRUE(listening);
  if (!listening) co_return;
  OneShot<bool> ended(f->env(0));
  f->env(0).Spawn(AcceptError(listening->get(), &ended));
  co_await f->env(0).Sleep(2ms);
  listening->reset();
  EXPECT_FALSE(co_await ended.Wait());
}
TEST_P(NetContract, DestroyingAListenerEndsAPendingAccept) { RunTask(ListenerDies(fixture_.get())); }

Task<> Echo(Conn conn) {
  while (true) {
    auto got = co_await conn->Recv();
    if (!got) co_return;
    Frame answer(std::move(got->header), std::move(got->payload));
    if (!conn->Send(std::move(answer))) co_return;
  }
}
Task<> Serve(Env* env, Listener* listener) {
  while (true) {
    auto conn = co_await listener->Accept();
    if (!conn) co_return;
    env->Spawn(Echo(std::move(*conn)));
  }
}
Task<Unit> EchoClient(EnvFixture* f, size_t node, Endpoint to, uint32_t seed) {
  auto conn = co_await f->env(node).net().Connect(to, kConnectTimeout);
  EXPECT_TRUE(conn) << conn.error().ToString();
  if (!conn) co_return Unit();
  EXPECT_FALSE((*conn)->Peer().empty());
  for (uint32_t i = 0; i < 20; ++i) {
    const Buffer data = Pattern(1000 * (seed + i), seed + i);
    const std::string header = std::to_string(seed) + "." + std::to_string(i);
    EXPECT_TRUE((*conn)->Send(Frame(header, data)));
    const auto got = co_await (*conn)->Recv();
    ExpectFrame(got, header, data.view());
  }
  co_return Unit();
}
Task<> ManyConnections(EnvFixture* f) {
  auto listening = f->env(1).net().Listen(Endpoint(f->host(1), 0));
  EXPECT_TRUE(listening);
  if (!listening) co_return;
  f->env(1).Spawn(Serve(&f->env(1), listening->get()));
  const Endpoint to(f->host(1), (*listening)->port());
  std::vector<Task<Unit>> clients;
  for (uint32_t i = 0; i < 30; ++i) clients.push_back(EchoClient(f, i % 3, to, i));
  co_await WhenAll(&f->env(0), std::move(clients));
  (*listening)->Close();
  co_await f->env(1).Sleep(2ms);
}
TEST_P(NetContract, ManyConnectionsAtOnce) { RunTask(ManyConnections(fixture_.get())); }

Task<> FileSlices(EnvFixture* f, std::string dir) {
  Pair p;
  if (!co_await Connect(f, &p)) co_return;
  auto opened = co_await f->env(0).fs().Open(dir + "/f", OpenMode::kCreateNew);
  EXPECT_TRUE(opened);
  if (!opened) co_return;
  const std::shared_ptr<File> file = std::move(*opened);
  const Buffer data = Pattern(3 << 20, 4);
  const auto written = co_await file->WriteAt(0, data);
  EXPECT_TRUE(written);
  const std::vector<std::pair<uint64_t, size_t>> slices = {
      {0, 1}, {0, 1 << 20}, {4095, 70'000}, {(3 << 20) - 5, 5}, {1 << 20, 1 << 20}, {17, 0}};
  for (const auto& [offset, size] : slices) {
    EXPECT_TRUE(p.client->Send(Frame("before", Buffer::Copy("b"))));
    EXPECT_TRUE(p.client->Send(Frame("slice", FileSlice{file, offset, size})));
  }
  EXPECT_TRUE(p.client->Send(Frame("after", Buffer::Copy("a"))));
  for (const auto& [offset, size] : slices) {
    const auto before = co_await p.server->Recv();
    ExpectFrame(before, "before", "b");
    const auto slice = co_await p.server->Recv();
    ExpectFrame(slice, "slice", data.view().substr(offset, size));
    if (!slice) co_return;
  }
  const auto after = co_await p.server->Recv();
  ExpectFrame(after, "after", "a");
}
TEST_P(NetContract, FileSlicesAreSentInPlace) { RunTask(FileSlices(fixture_.get(), fixture_->dir(0))); }

// The connection's handle dies in the hands of one task while another still receives.
Task<> DestroyUnderReceiver(EnvFixture* f) {
  Pair p;
  if (!co_await Connect(f, &p)) co_return;
  OneShot<Code> ended(f->env(1));
  f->env(1).Spawn(ReceiveError(p.server.get(), &ended));
  co_await f->env(1).Sleep(2ms);
  p.server.reset();
  EXPECT_EQ(co_await ended.Wait(), Code::kConnectionLost);
}
TEST_P(NetContract, DestroyingTheHandleEndsAPendingRecv) { RunTask(DestroyUnderReceiver(fixture_.get())); }

// Everything in flight when the end comes: nothing leaks, nothing resumes.
Task<> StayBusy(EnvFixture* f, OneShot<>* begun, OneShot<Code>* never) {
  Pair p;
  if (!co_await Connect(f, &p)) co_return;
  const Buffer data = Pattern(kMaxFramePayload, 1);
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(p.client->Send(Frame("h", data)));
  f->env(0).Spawn(ReceiveError(p.client.get(), never));
  f->env(1).Spawn(Serve(&f->env(1), p.listener.get()));
  co_await f->env(0).Sleep(2ms);
  begun->Set();
  co_await f->env(0).Sleep(1h);
}
Task<> StartBusy(EnvFixture* f, OneShot<Code>* never) {
  OneShot<> begun(f->env(0));
  f->env(0).Spawn(StayBusy(f, &begun, never));
  co_await begun.Wait();
}
TEST_P(NetContract, TeardownWithTrafficInFlight) {
  OneShot<Code> never(env(0));
  RunTask(StartBusy(fixture_.get(), &never));
  fixture_.reset();
  EXPECT_FALSE(never.done());
}

}  // namespace
}  // namespace picket::contract
