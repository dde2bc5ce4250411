// TCP with the frames of docs/PROTOCOL.md. Names are resolved and connections made off the loop.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>
#include <vector>

#include "common/env/env.h"
#include "common/env/posix/loop.h"

namespace picket::posix {

class TcpNet final : public Net {
 public:
  // `congestion_control`: see tcp_options.h.
  TcpNet(Env& env, Loop& loop, std::string congestion_control)
      : env_(env), loop_(loop), congestion_control_(std::move(congestion_control)) {}

  // Resolves a name before it returns: meant for a process's start.
  Result<std::unique_ptr<Listener>> Listen(Endpoint at) override;
  // Tries the addresses of a name in turn, each with its share of the time.
  Task<Result<std::unique_ptr<FrameConn>>> Connect(Endpoint to, Nanos timeout) override;

  // A connection from a connected, non-blocking socket.
  std::unique_ptr<FrameConn> Wrap(asio::ip::tcp::socket socket, bool accepted);
  Env& env() { return env_; }
  Loop& loop() { return loop_; }

 private:
  using Address = asio::ip::tcp::endpoint;
  Task<Result<std::vector<Address>>> Resolve(const Endpoint* to, Mono deadline);
  Task<Result<std::unique_ptr<FrameConn>>> ConnectOne(const Endpoint* to, Address address, Mono deadline);

  Env& env_;
  Loop& loop_;
  const std::string congestion_control_;
  bool congestion_control_refused_ = false;  // said once
};

}  // namespace picket::posix
