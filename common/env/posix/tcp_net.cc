#include "common/env/posix/tcp_net.h"

#include <sys/socket.h>

#include <boost/asio/ip/address.hpp>
#include <optional>

#include "common/env/one_shot.h"
#include "common/env/posix/fd.h"
#include "common/env/posix/tcp_conn.h"
#include "common/env/posix/tcp_options.h"

namespace picket::posix {
namespace {

using boost::system::error_code;
using asio::ip::tcp;

constexpr int kBacklog = 1024;
// After running out of descriptors or memory; the peers wait in the backlog meanwhile.
constexpr Nanos kAcceptPause = 100ms;

std::string ToText(const tcp::endpoint& e) { return Endpoint(e.address().to_string(), e.port()).ToString(); }

// The environment's timer for one wait, gone with its scope.
class Alarm {
 public:
  Alarm(Env& env, Mono when, Fn fn) : env_(env), id_(env.At(when, std::move(fn))) {}
  ~Alarm() { env_.Cancel(id_); }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

 private:
  Env& env_;
  const TimerId id_;
};

// Sockets are made and accepted by hand: Asio's would be inherited by child processes.
constexpr int kSocketFlags = SOCK_NONBLOCK | SOCK_CLOEXEC;

Result<tcp::socket> Adopt(Loop& loop, const tcp& protocol, UniqueFd fd) {
  if (!fd) return Fail(Code::kUnavailable, "cannot make a socket: " + std::generic_category().message(errno));
  tcp::socket socket(loop.io());
  error_code ec;
  socket.assign(protocol, fd.get(), ec);
  if (ec) return Fail(Code::kUnavailable, "cannot watch a socket: " + ec.message());
  fd.release();
  return socket;
}

bool IsResourceShortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

class TcpListener final : public Listener {
 public:
  TcpListener(TcpNet& net, tcp::acceptor acceptor)
      : state_(std::make_shared<State>(net, std::move(acceptor))) {}
  ~TcpListener() override { state_->Close(); }

  Task<Result<std::unique_ptr<FrameConn>>> Accept() override { return AcceptOn(state_); }
  uint16_t port() const override { return state_->local.port(); }
  void Close() override { state_->Close(); }

 private:
  struct State {
    State(TcpNet& n, tcp::acceptor a) : net(n), acceptor(std::move(a)) {
      error_code ignored;
      local = acceptor.local_endpoint(ignored);
    }
    void Close() {
      error_code ignored;
      acceptor.close(ignored);
    }
    TcpNet& net;
    tcp::acceptor acceptor;
    tcp::endpoint local;
    bool short_of_resources = false;
  };

  static Task<Result<std::unique_ptr<FrameConn>>> AcceptOn(std::shared_ptr<State> state);
  static Task<> Readable(std::shared_ptr<State> state);

  const std::shared_ptr<State> state_;
};

Task<Result<std::unique_ptr<FrameConn>>> TcpListener::AcceptOn(std::shared_ptr<State> state) {
  Env& env = state->net.env();
  while (true) {
    co_await Readable(state);  // first, so that a flood of connections leaves the loop its turns
    if (!state->acceptor.is_open()) break;
    UniqueFd fd(::accept4(state->acceptor.native_handle(), nullptr, nullptr, kSocketFlags));
    if (fd) {
      auto socket = Adopt(state->net.loop(), state->local.protocol(), std::move(fd));
      if (!socket) continue;
      state->short_of_resources = false;
      co_return state->net.Wrap(std::move(*socket), /*accepted=*/true);
    }
    const int error = errno;
    if (IsResourceShortage(error)) {
      if (!std::exchange(state->short_of_resources, true)) {
        env.Log(LogLevel::kWarning, "cannot accept on " + ToText(state->local) + ": " + std::generic_category().message(error) +
                                        "; new connections wait (raise the limit of open files)");
      }
      co_await env.Sleep(kAcceptPause);
    }
    // All else is the end of that one connection, before we saw it.
  }
  co_return Fail(Code::kUnavailable, "the listener on " + ToText(state->local) + " is closed");
}

Task<> TcpListener::Readable(std::shared_ptr<State> state) {
  auto readable = std::make_shared<OneShot<>>(state->net.env());
  state->acceptor.async_wait(asio::socket_base::wait_read,
                             [state, readable](const error_code&) { readable->Set(); });
  co_await readable->Wait();
}

}  // namespace

std::unique_ptr<FrameConn> TcpNet::Wrap(tcp::socket socket, bool accepted) {
  error_code ec;
  const auto remote = socket.remote_endpoint(ec);
  const auto local = socket.local_endpoint(ec);
  const bool same_machine = remote.address().is_loopback() || remote.address() == local.address();
  SetTcpOptions(socket.native_handle());
  auto status = SetCongestionControl(socket.native_handle(), congestion_control_, same_machine);
  if (!status && !std::exchange(congestion_control_refused_, true)) {
    env_.Log(LogLevel::kWarning, status.error().message + "; going on with the system's");
  }
  return std::make_unique<TcpConn>(env_, loop_, std::move(socket),
                                   accepted ? TcpConn::Side::kAccepting : TcpConn::Side::kConnecting, ToText(remote));
}

Result<std::unique_ptr<Listener>> TcpNet::Listen(Endpoint at) {
  const auto failed = [&at](const std::string& why) {
    return Fail(Code::kUnavailable, "cannot listen on " + at.ToString() + ": " + why);
  };
  error_code ec;
  tcp::endpoint address(asio::ip::make_address(at.host, ec), at.port);
  if (ec) {
    tcp::resolver resolver(loop_.io());
    const auto found = resolver.resolve(at.host, std::to_string(at.port), tcp::resolver::passive, ec);
    if (ec) return failed(ec.message());
    address = found.begin()->endpoint();
  }
  UniqueFd fd(::socket(address.protocol().family(), SOCK_STREAM | kSocketFlags, IPPROTO_TCP));
  if (!fd) return failed(std::generic_category().message(errno));
  tcp::acceptor acceptor(loop_.io());
  acceptor.assign(address.protocol(), fd.get(), ec);
  if (ec) return failed(ec.message());
  fd.release();
  acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
  acceptor.bind(address, ec);
  if (ec) return failed(ec.message());
  acceptor.listen(kBacklog, ec);
  if (ec) return failed(ec.message());
  std::unique_ptr<Listener> listener = std::make_unique<TcpListener>(*this, std::move(acceptor));
  return listener;
}

Task<Result<std::unique_ptr<FrameConn>>> TcpNet::Connect(Endpoint to, Nanos timeout) {
  const Mono deadline = env_.Now() + timeout;
  auto addresses = co_await Resolve(&to, deadline);
  if (!addresses) co_return Fail(std::move(addresses).error());
  Error last(Code::kUnavailable, to.ToString() + ": the name has no address");
  for (size_t i = 0; i < addresses->size(); ++i) {
    const Mono now = env_.Now();
    const auto share = (deadline - now) / static_cast<int64_t>(addresses->size() - i);
    auto conn = co_await ConnectOne(&to, (*addresses)[i], now + share);
    if (conn) co_return std::move(*conn);
    last = std::move(conn).error();
  }
  co_return Fail(std::move(last));
}

Task<Result<std::vector<TcpNet::Address>>> TcpNet::Resolve(const Endpoint* to, Mono deadline) {
  error_code ec;
  const auto literal = asio::ip::make_address(to->host, ec);
  if (!ec) co_return std::vector<Address>{Address(literal, to->port)};

  struct Lookup {
    explicit Lookup(Loop& loop) : resolver(loop.io()) {}
    tcp::resolver resolver;
    error_code ec;
    std::vector<Address> addresses;
  };
  auto lookup = std::make_shared<Lookup>(loop_);
  auto done = std::make_shared<OneShot<bool>>(env_);
  lookup->resolver.async_resolve(to->host, std::to_string(to->port), tcp::resolver::numeric_service,
                                 [lookup, done](const error_code& e, const tcp::resolver::results_type& found) {
                                   lookup->ec = e;
                                   for (const auto& entry : found) lookup->addresses.push_back(entry.endpoint());
                                   done->Set(true);
                                 });
  const Alarm alarm(env_, deadline, [done] { done->Set(false); });
  if (!co_await done->Wait()) {
    co_return Fail(Code::kDeadlineExceeded, "looking up \"" + to->host + "\" took too long; check the name service");
  }
  if (lookup->ec) {
    co_return Fail(Code::kUnavailable, "cannot look up \"" + to->host + "\": " + lookup->ec.message());
  }
  co_return std::move(lookup->addresses);
}

Task<Result<std::unique_ptr<FrameConn>>> TcpNet::ConnectOne(const Endpoint* to, Address address, Mono deadline) {
  UniqueFd fd(::socket(address.protocol().family(), SOCK_STREAM | kSocketFlags, IPPROTO_TCP));
  auto made = Adopt(loop_, address.protocol(), std::move(fd));
  if (!made) co_return Fail(std::move(made).error());
  auto socket = std::make_shared<tcp::socket>(std::move(*made));
  auto done = std::make_shared<OneShot<std::optional<error_code>>>(env_);  // empty: no answer in time
  socket->async_connect(address, [socket, done](const error_code& ec) { done->Set(ec); });
  const Alarm alarm(env_, deadline, [done] { done->Set(std::nullopt); });
  error_code ec = (co_await done->Wait()).value_or(asio::error::timed_out);
  if (!ec && socket->local_endpoint(ec) == address) {
    // Two ends that are one: a port nobody listens on was handed to this very socket.
    ec = asio::error::connection_refused;
  }
  if (!ec) co_return Wrap(std::move(*socket), /*accepted=*/false);
  error_code ignored;
  socket->close(ignored);
  if (ec == asio::error::timed_out) {
    co_return Fail(Code::kDeadlineExceeded, "no answer from " + to->ToString() + " while connecting");
  }
  co_return Fail(Code::kUnavailable, "cannot connect to " + to->ToString() + ": " + ec.message());
}

}  // namespace picket::posix
