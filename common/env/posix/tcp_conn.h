// Frames over a stream socket. All frames queued in one turn of the loop leave in one sendmsg; file
// slices that the page cache holds leave by sendfile, others are read first, off the loop; a large
// payload is received straight into its final buffer.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>

#include "common/env/env.h"
#include "common/env/posix/loop.h"

namespace picket::posix {

class TcpConn final : public FrameConn {
 public:
  enum class Side { kConnecting, kAccepting };

  // `socket` is connected and non-blocking; `peer` names it in messages.
  TcpConn(Env& env, Loop& loop, asio::ip::tcp::socket socket, Side side, std::string peer);
  ~TcpConn() override;

  bool Send(Frame frame) override;
  size_t QueuedBytes() const override;
  Task<> Drained(size_t limit) override;
  Task<Result<Frame>> Recv() override;
  // Offers what is queued to the kernel once more, without waiting.
  void Close() override;
  std::string Peer() const override;

 private:
  struct State;  // outlives the handle while the kernel or a task uses it
  const std::shared_ptr<State> state_;
};

}  // namespace picket::posix
