// The network of one incarnation of a node. A Socket is the kernel's end of a connection; it may live
// on after its owner closed it, while frames are on the wire.
//
// 1. FIFO per direction; a break loses a suffix of what was sent, and the two sides may learn of it at
//    different times or never (half-open after a power loss).
// 2. Closing does not recall what is on the wire: a request on an old connection can arrive after its
//    retry on a new one.
// 3. A receiver that does not read stalls its sender at socket_buffer_bytes.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/env/net.h"
#include "common/env/one_shot.h"
#include "tests/sim/world.h"

namespace picket::sim {

class Node;
class SimListener;

class Socket : public std::enable_shared_from_this<Socket> {
 public:
  Socket(Node& node, uint64_t id, std::string peer_name);

  static void Join(const std::shared_ptr<Socket>& a, const std::shared_ptr<Socket>& b, Node& node_a, Node& node_b);

  bool Send(Frame frame);
  void CloseByOwner();
  // Both ends learn of a break, each after its own delay; what is still on the wire is lost.
  void Reset();
  // The process is gone and its kernel says so, or the machine is gone and says nothing.
  void OnCrash(bool power_lost, Rng& rng);

  bool usable() const { return !closed_ && !broken_; }
  size_t queued_bytes() const { return queued_bytes_; }
  uint64_t id() const { return id_; }
  const std::string& peer_name() const { return peer_name_; }

 private:
  friend class SimConn;
  struct Sent {
    Frame frame;
    uint32_t checksum = 0;  // of the payload, to notice a buffer that changed after it was sent
    Nanos arrival{};
  };

  void Pump();
  void Arrive();
  bool Deliver(Socket& to);
  void SendFin();
  void ArriveFin();
  // The other side answered with a reset, or silence lasted too long.
  void Break(std::string why);
  void BreakAfter(Nanos delay, std::string why);
  bool Dead() const;  // its incarnation is gone
  void Wake();
  void WakeDrained();

  Node& node_;
  World& world_;
  const uint64_t id_;
  const uint32_t incarnation_;
  const std::string peer_name_;
  std::weak_ptr<Socket> peer_;
  Node* peer_node_ = nullptr;

  std::deque<Sent> wire_;
  size_t queued_bytes_ = 0;
  Nanos last_arrival_{};
  std::optional<Nanos> silent_since_;  // no acknowledgement since
  Nanos backoff_{};
  bool pumping_ = false;
  bool fin_sent_ = false;

  std::deque<Frame> inbox_;
  size_t inbox_bytes_ = 0;
  bool fin_received_ = false;
  bool end_seen_ = false;  // Recv has said that the peer closed: from there on Send refuses
  bool closed_ = false;
  std::optional<std::string> broken_;

  OneShot<>* reader_ = nullptr;
  std::vector<OneShot<>*> drain_waiters_;
};

class SimConn final : public FrameConn {
 public:
  explicit SimConn(Node& node, std::shared_ptr<Socket> socket) : node_(node), socket_(std::move(socket)) {}
  ~SimConn() override { socket_->CloseByOwner(); }
  bool Send(Frame frame) override { return socket_->Send(std::move(frame)); }
  size_t QueuedBytes() const override { return socket_->queued_bytes(); }
  Task<> Drained(size_t limit) override;
  Task<Result<Frame>> Recv() override;
  void Close() override { socket_->CloseByOwner(); }
  std::string Peer() const override { return socket_->peer_name(); }

 private:
  Node& node_;
  const std::shared_ptr<Socket> socket_;
};

class SimNet final : public Net {
 public:
  explicit SimNet(Node& node) : node_(node) {}

  Result<std::unique_ptr<Listener>> Listen(Endpoint at) override;
  Task<Result<std::unique_ptr<FrameConn>>> Connect(Endpoint to, Nanos timeout) override;

  void OnCrash(bool power_lost);
  // Breaks one of the node's connections, chosen by `pick`. False when there is none.
  bool ResetOne(uint64_t pick);
  size_t connections() const { return sockets_.size(); }
  // When the node's card has sent what is queued, plus `bytes`.
  Nanos Transmit(size_t bytes);

 private:
  friend class Socket;
  friend class SimListener;
  std::shared_ptr<Socket> MakeSocket(std::string peer_name);

  static constexpr uint16_t kFirstEphemeralPort = 40000;

  Node& node_;
  std::map<uint16_t, SimListener*> listeners_;
  std::map<uint64_t, std::weak_ptr<Socket>> sockets_;
  uint64_t next_socket_ = 1;
  uint16_t next_port_ = kFirstEphemeralPort;
  Nanos free_at_{};
};

class SimListener final : public Listener {
 public:
  SimListener(Node& node, SimNet& net, uint16_t port);
  ~SimListener() override { Close(); }
  Task<Result<std::unique_ptr<FrameConn>>> Accept() override;
  uint16_t port() const override { return port_; }
  void Close() override;

 private:
  friend class SimNet;
  struct State {
    bool closed = false;
    std::deque<std::unique_ptr<SimConn>> backlog;
    OneShot<>* waiter = nullptr;
  };
  void Offer(std::unique_ptr<SimConn> conn);

  Node& node_;
  SimNet& net_;
  const uint16_t port_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace picket::sim
