// What only TCP has: foreign peers, descriptors that run out, uncached file slices, names, time-outs.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <thread>

#include "common/base/rng.h"
#include "common/env/one_shot.h"
#include "common/env/posix/fd.h"
#include "common/env/posix/frame_codec.h"
#include "common/env/posix/posix_file.h"
#include "common/env/posix/tcp_conn.h"
#include "common/env/posix/tcp_options.h"
#include "tests/contract/posix_fixture.h"

namespace picket::contract {
namespace {

using posix::UniqueFd;

class TcpNetTest : public testing::Test {
 protected:
  void RunTask(Task<> task) { ASSERT_TRUE(fixture_.Run(0, std::move(task), 20s)); }
  PosixEnv& env() { return fixture_.posix(); }
  PosixFixture fixture_;
};

UniqueFd RawConnect(uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  return fd;
}

template <class Bytes>
std::string Text(const Bytes& bytes) {
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}
std::string Preface() { return Text(posix::EncodePreface()); }
std::string Encode(std::string_view header, std::string_view payload) {
  std::string out = Text(posix::EncodeFrameHead(header, payload.size()));
  return out.append(header).append(payload);
}

// A connection over one end of a socket pair; the other is the test's, blocking.
struct Half {
  std::unique_ptr<FrameConn> conn;
  UniqueFd other;
};
Half MakePair(PosixEnv& env, posix::TcpConn::Side side) {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
  EXPECT_EQ(::fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
  asio::ip::tcp::socket socket(env.io(), asio::ip::tcp::v4(), fds[0]);
  return {std::make_unique<posix::TcpConn>(env, env.loop(), std::move(socket), side, "pair"), UniqueFd(fds[1])};
}

// A peer that writes in pieces of any size and reads in pieces of any size gets the same frames back.
Task<> EchoOver(FrameConn* conn, int count) {
  for (int i = 0; i < count; ++i) {
    auto got = co_await conn->Recv();
    EXPECT_TRUE(got) << got.error().ToString();
    if (!got) co_return;
    Frame answer(std::move(got->header), std::move(got->payload));
    EXPECT_TRUE(conn->Send(std::move(answer)));
  }
  co_await conn->Drained(0);
}
TEST_F(TcpNetTest, BytesInPiecesOfAnySize) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Rng rng(seed);
    std::string stream;
    const int count = 30;
    for (int i = 0; i < count; ++i) {
      stream += Encode(std::string(rng.Below(20'000), static_cast<char>('a' + i)),
                       std::string(rng.Chance(0.2) ? rng.Below(kMaxFramePayload) : rng.Below(3000), static_cast<char>(i)));
    }
    Half half = MakePair(env(), posix::TcpConn::Side::kAccepting);
    std::string back;
    std::thread peer([&, writer_seed = rng.Next(), reader_seed = rng.Next()] {
      std::thread writer([&, writer_seed] {
        Rng r(writer_seed);
        std::string bytes = Preface() + stream;
        for (size_t at = 0; at < bytes.size();) {
          const size_t n = std::min<size_t>(r.Below(r.Chance(0.5) ? 40 : 200'000) + 1, bytes.size() - at);
          const ssize_t w = ::send(half.other.get(), bytes.data() + at, n, MSG_NOSIGNAL);
          if (w <= 0) return;
          at += static_cast<size_t>(w);
        }
      });
      Rng r(reader_seed);
      std::string chunk(200'000, '\0');
      while (back.size() < stream.size()) {
        const ssize_t n = ::recv(half.other.get(), chunk.data(), r.Below(chunk.size()) + 1, 0);
        if (n <= 0) break;
        back.append(chunk, 0, static_cast<size_t>(n));
      }
      writer.join();
    });
    RunTask(EchoOver(half.conn.get(), count));
    peer.join();
    EXPECT_TRUE(back == stream) << "seed " << seed;
  }
}

Task<> ExpectError(FrameConn* conn, int good, Code code) {
  for (int i = 0; i < good; ++i) {
    const auto got = co_await conn->Recv();
    EXPECT_TRUE(got) << got.error().ToString();
  }
  for (int i = 0; i < 2; ++i) {
    const auto got = co_await conn->Recv();
    EXPECT_FALSE(got);
    if (!got) EXPECT_EQ(got.error().code, code) << got.error().ToString();
  }
  if (code == Code::kCorrupt) EXPECT_FALSE(conn->Send(Frame("h", Payload()))) << "a corrupt connection must close";
}
TEST_F(TcpNetTest, AForeignPeerIsCorruptAndClosed) {
  Half half = MakePair(env(), posix::TcpConn::Side::kAccepting);
  const std::string bytes = Preface() + Encode("good", "frame") + "GET / HTTP/1.1\r\n\r\n";
  ASSERT_EQ(::send(half.other.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  RunTask(ExpectError(half.conn.get(), 1, Code::kCorrupt));
  char byte;
  EXPECT_EQ(::recv(half.other.get(), &byte, 1, 0), 0);
}
TEST_F(TcpNetTest, AFrameCutShortIsALostConnection) {
  const std::string frame = Encode("header", std::string(30'000, 'x'));
  for (const size_t cut : {size_t{3}, size_t{8}, size_t{10}, size_t{25}, size_t{10'000}, size_t{20'000}}) {
    Half half = MakePair(env(), posix::TcpConn::Side::kAccepting);
    const std::string bytes = (Preface() + frame).substr(0, cut);
    ASSERT_EQ(::send(half.other.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
    half.other = UniqueFd();
    RunTask(ExpectError(half.conn.get(), 0, Code::kConnectionLost));
  }
}
TEST_F(TcpNetTest, TheConnectingSideSpeaksFirst) {
  Half half = MakePair(env(), posix::TcpConn::Side::kConnecting);
  EXPECT_TRUE(half.conn->Send(Frame("h", Buffer::Copy("p"))));
  struct Drain {
    static Task<> Run(FrameConn* c) { co_await c->Drained(0); }
  };
  RunTask(Drain::Run(half.conn.get()));
  std::string got(100, '\0');
  const ssize_t n = ::recv(half.other.get(), got.data(), got.size(), 0);
  ASSERT_GT(n, 0);
  got.resize(static_cast<size_t>(n));
  EXPECT_EQ(got, Preface() + Encode("h", "p"));
}

// One system call for all that was queued in a turn: the peer sees it at once.
TEST_F(TcpNetTest, CloseOffersTheQueueToTheKernel) {
  Half half = MakePair(env(), posix::TcpConn::Side::kConnecting);
  EXPECT_TRUE(half.conn->Send(Frame("bye", Payload())));
  half.conn->Close();
  std::string got(100, '\0');
  const ssize_t n = ::recv(half.other.get(), got.data(), got.size(), 0);
  ASSERT_GT(n, 0);
  got.resize(static_cast<size_t>(n));
  EXPECT_EQ(got, Preface() + Encode("bye", ""));
}

// ---- File slices -----------------------------------------------------------------------------------

class CountingFile final : public File {
 public:
  Task<Result<size_t>> ReadAt(uint64_t offset, Buffer into) override {
    for (size_t i = 0; i < into.size(); ++i) into.data()[i] = static_cast<std::byte>(offset + i);
    co_return std::min<size_t>(into.size(), size_max);
  }
  Task<Status> WriteAt(uint64_t, Buffer) override { co_return Status(); }
  Task<Status> Sync() override { co_return Status(); }
  Task<Status> Truncate(uint64_t) override { co_return Status(); }
  Task<Status> Reserve(uint64_t) override { co_return Status(); }
  Task<Result<uint64_t>> Size() override { co_return uint64_t{0}; }
  void StartWriteback(uint64_t, uint64_t) override {}
  size_t size_max = ~size_t{0};
};

std::string ReadExactly(int fd, size_t size) {
  std::string out(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::recv(fd, out.data() + done, size - done, 0);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  out.resize(done);
  return out;
}

Task<> SendAndDrain(FrameConn* conn, std::vector<Frame>* frames) {
  for (Frame& f : *frames) EXPECT_TRUE(conn->Send(std::move(f)));
  co_await conn->Drained(0);
}
TEST_F(TcpNetTest, ForeignFilesAreReadAndSentInOrder) {
  Half half = MakePair(env(), posix::TcpConn::Side::kAccepting);
  const auto file = std::make_shared<CountingFile>();
  std::vector<Frame> frames;
  std::string expected;
  for (const size_t size : {size_t{10}, size_t{0}, size_t{5000}}) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(7 + i);
    frames.emplace_back("slice", FileSlice{file, 7, size});
    frames.emplace_back("after", Payload());
    expected += Encode("slice", bytes) + Encode("after", "");
  }
  RunTask(SendAndDrain(half.conn.get(), &frames));
  EXPECT_TRUE(ReadExactly(half.other.get(), expected.size()) == expected);
}
TEST_F(TcpNetTest, ASliceBeyondItsFileBreaksTheConnection) {
  Half half = MakePair(env(), posix::TcpConn::Side::kAccepting);
  const auto file = std::make_shared<CountingFile>();
  file->size_max = 5;
  std::vector<Frame> frames;
  frames.emplace_back("slice", FileSlice{file, 0, 10});
  RunTask(SendAndDrain(half.conn.get(), &frames));
  EXPECT_FALSE(half.conn->Send(Frame("h", Payload())));
}

Task<> OpenFilled(Env* env, std::string path, Buffer data, std::shared_ptr<posix::PosixFile>* out) {
  auto opened = co_await env->fs().Open(path, OpenMode::kCreateNew);
  EXPECT_TRUE(opened);
  if (!opened) co_return;
  EXPECT_TRUE(co_await (*opened)->WriteAt(0, data));
  EXPECT_TRUE(co_await (*opened)->Sync());
  out->reset(dynamic_cast<posix::PosixFile*>(opened->release()));
}
TEST_F(TcpNetTest, SlicesOfUncachedAndTruncatedFiles) {
  Buffer data = Buffer::Allocate(kMaxFramePayload);
  for (size_t i = 0; i < data.size(); ++i) data.data()[i] = static_cast<std::byte>(i * 13 + (i >> 10));
  std::shared_ptr<posix::PosixFile> file;
  RunTask(OpenFilled(&env(), fixture_.dir(0) + "/f", data, &file));
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(::posix_fadvise(file->fd(), 0, 0, POSIX_FADV_DONTNEED), 0);
  {
    Half half = MakePair(env(), posix::TcpConn::Side::kAccepting);
    std::vector<Frame> frames;
    frames.emplace_back("cold", FileSlice{file, 0, data.size()});
    frames.emplace_back("warm", FileSlice{file, 100, 1000});
    const std::string expected = Encode("cold", data.view()) + Encode("warm", data.view().substr(100, 1000));
    std::string got;
    std::thread reader([&] { got = ReadExactly(half.other.get(), expected.size()); });
    RunTask(SendAndDrain(half.conn.get(), &frames));
    reader.join();
    EXPECT_TRUE(got == expected);
  }
  ASSERT_EQ(::ftruncate(file->fd(), 100), 0);
  Half half = MakePair(env(), posix::TcpConn::Side::kAccepting);
  std::vector<Frame> frames;
  frames.emplace_back("short", FileSlice{file, 0, 1000});
  RunTask(SendAndDrain(half.conn.get(), &frames));
  EXPECT_FALSE(half.conn->Send(Frame("h", Payload())));
}

// ---- Listening and connecting ----------------------------------------------------------------------

Task<> AcceptOne(Listener* listener, OneShot<bool>* done, std::unique_ptr<FrameConn>* out) {
  auto conn = co_await listener->Accept();
  if (conn) *out = std::move(*conn);
  done->Set(conn.has_value());
}
Task<> OutOfDescriptors(PosixEnv* env) {
  auto listening = env->net().Listen(Endpoint("127.0.0.1", 0));
  EXPECT_TRUE(listening);
  if (!listening) co_return;
  const UniqueFd client = RawConnect((*listening)->port());
  rlimit before{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  OneShot<bool> accepted(*env);
  std::unique_ptr<FrameConn> conn;
  env->Spawn(AcceptOne(listening->get(), &accepted, &conn));
  const auto cpu = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec * 1'000'000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_sec * 1'000'000 +
           usage.ru_stime.tv_usec;
  };
  const auto used = cpu();
  co_await env->Sleep(300ms);
  EXPECT_LT(cpu() - used, 100'000) << "the listener spins";
  EXPECT_FALSE(accepted.done());
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(co_await accepted.Wait()) << "the connection that waited is lost";
}
TEST_F(TcpNetTest, RunningOutOfDescriptorsPausesTheListener) {
#if __has_feature(undefined_behavior_sanitizer)
  GTEST_SKIP() << "the sanitizer's own checks need descriptors";
#endif
  RunTask(OutOfDescriptors(&env()));
}

Task<> Names(PosixEnv* env) {
  auto listening = env->net().Listen(Endpoint("localhost", 0));
  EXPECT_TRUE(listening) << listening.error().ToString();
  if (!listening) co_return;
  const auto conn = co_await env->net().Connect(Endpoint("localhost", (*listening)->port()), 5s);
  EXPECT_TRUE(conn) << conn.error().ToString();
  const auto nobody = co_await env->net().Connect(Endpoint("no-such-host.invalid", 1), 5s);
  EXPECT_FALSE(nobody);
  if (!nobody) EXPECT_NE(nobody.error().message.find("no-such-host.invalid"), std::string::npos);
  const auto bad = env->net().Listen(Endpoint("192.0.2.1", 0));  // TEST-NET-1: not ours
  EXPECT_FALSE(bad);
  if (!bad) EXPECT_NE(bad.error().message.find("192.0.2.1"), std::string::npos) << bad.error().message;
}
TEST_F(TcpNetTest, Names) { RunTask(Names(&env())); }

// A backlog that is full answers no further SYN.
Task<> NoAnswer(PosixEnv* env) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  EXPECT_EQ(::listen(listener.get(), 0), 0);
  socklen_t size = sizeof at;
  EXPECT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &size), 0);
  const UniqueFd fills_the_backlog = RawConnect(ntohs(at.sin_port));
  const Mono begin = env->Now();
  const auto conn = co_await env->net().Connect(Endpoint("127.0.0.1", ntohs(at.sin_port)), 100ms);
  EXPECT_FALSE(conn);
  if (!conn) EXPECT_EQ(conn.error().code, Code::kDeadlineExceeded) << conn.error().ToString();
  EXPECT_GE(env->Now() - begin, 100ms);
}
TEST_F(TcpNetTest, ConnectEndsInTime) { RunTask(NoAnswer(&env())); }

TEST_F(TcpNetTest, SocketOptions) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  posix::SetTcpOptions(fd.get());
  int value = 0;
  socklen_t size = sizeof value;
  ASSERT_EQ(::getsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &value, &size), 0);
  EXPECT_EQ(value, 1);
  ASSERT_EQ(::getsockopt(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &size), 0);
  EXPECT_EQ(value, 30'000);
  const auto congestion_control = [&] {
    char name[32] = {};
    socklen_t n = sizeof name;
    EXPECT_EQ(::getsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, name, &n), 0);
    return std::string(name);
  };
  const std::string system = congestion_control();
  EXPECT_TRUE(posix::SetCongestionControl(fd.get(), "auto", false));
  EXPECT_TRUE(posix::SetCongestionControl(fd.get(), "system", true));
  EXPECT_EQ(congestion_control(), system);
  EXPECT_TRUE(posix::SetCongestionControl(fd.get(), "auto", true));
  EXPECT_TRUE(congestion_control() == "cubic" || congestion_control() == "reno") << congestion_control();
  const auto refused = posix::SetCongestionControl(fd.get(), "no-such", true);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("no-such"), std::string::npos);
}

}  // namespace
}  // namespace picket::contract
