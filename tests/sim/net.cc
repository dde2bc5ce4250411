#include "tests/sim/net.h"

#include <algorithm>

#include "common/base/crc32c.h"
#include "tests/sim/fs.h"
#include "tests/sim/node.h"

namespace picket::sim {
namespace {

Nanos Latency(World& world) {
  const Config& c = world.config();
  Rng& rng = world.net_rng();
  Nanos t(rng.Range(c.latency_min.count(), c.latency_max.count()));
  if (rng.Chance(c.tail_chance)) t += Nanos(rng.Range(0, c.tail_max.count()));
  if (c.loss > 0) {
    for (Nanos rto = c.retransmit_min; rng.Chance(c.loss); rto *= 2) t += rto;
  }
  return t;
}

std::string LostTo(const std::string& peer, std::string_view why) {
  return fmt::format("connection to {}: {}", peer, why);
}

}  // namespace

// ---- Socket --------------------------------------------------------------------------------------

Socket::Socket(Node& node, uint64_t id, std::string peer_name)
    : node_(node),
      world_(node.world()),
      id_(id),
      incarnation_(node.incarnation()),
      peer_name_(std::move(peer_name)) {}

void Socket::Join(const std::shared_ptr<Socket>& a, const std::shared_ptr<Socket>& b, Node& node_a, Node& node_b) {
  a->peer_ = b;
  b->peer_ = a;
  a->peer_node_ = &node_b;
  b->peer_node_ = &node_a;
}

bool Socket::Dead() const { return !node_.alive() || node_.incarnation() != incarnation_; }

void Socket::Wake() {
  if (reader_ != nullptr) reader_->Set();
  WakeDrained();
}

void Socket::WakeDrained() {
  for (OneShot<>* w : drain_waiters_) w->Set();
}

bool Socket::Send(Frame frame) {
  if (!usable() || end_seen_ || node_.dying()) return false;
  PICKET_CHECK(frame.header.size() <= kMaxFrameHeader && frame.payload.size() <= kMaxFramePayload);
  if (const FileSlice* slice = frame.payload.file()) {
    auto bytes = SimFs::ReadSlice(node_, *slice);
    if (!bytes) {
      Break("cannot read the file to send: " + bytes.error().message);
      return false;
    }
    frame.payload = Payload(std::move(*bytes));
  }
  const size_t size = frame.header.size() + frame.payload.size();
  Nanos arrival = node_.sim_net().Transmit(size) + Latency(world_);
  arrival = std::max(arrival, last_arrival_ + Nanos(1));
  last_arrival_ = arrival;
  queued_bytes_ += size;
  const uint32_t checksum = Crc32c(frame.payload.buffer().view());
  wire_.push_back({std::move(frame), checksum, arrival});
  if (!pumping_) Pump();
  return true;
}

void Socket::Pump() {
  if (wire_.empty()) {
    pumping_ = false;
    if (closed_ || (Dead() && !broken_)) SendFin();
    return;
  }
  pumping_ = true;
  world_.At(wire_.front().arrival, [self = shared_from_this()] { self->Arrive(); });
}

// The frame at the head of the wire reaches the other machine, or is lost on the way.
void Socket::Arrive() {
  if (wire_.empty() || broken_) {
    pumping_ = false;
    return;
  }
  const uint32_t from = node_.index();
  const uint32_t to = peer_node_->index();
  const bool lost = world_.IsCut(from, to) || !peer_node_->powered();
  const bool unacknowledged = lost || world_.IsCut(to, from);
  if (unacknowledged) {
    if (!silent_since_) {
      silent_since_ = world_.now();
      backoff_ = world_.config().retransmit_min;
    }
    if (world_.now() - *silent_since_ >= world_.config().give_up) {
      pumping_ = false;
      Break("no acknowledgement");
      return;
    }
  } else {
    silent_since_.reset();
  }
  auto peer = peer_.lock();
  const bool stalled = !lost && peer && peer->inbox_bytes_ >= world_.config().socket_buffer_bytes;
  if (lost || stalled) {
    if (Dead() && node_.powered() == false) {  // nobody is left to send it again
      wire_.clear();
      queued_bytes_ = 0;
      pumping_ = false;
      return;
    }
    // Try again later; all behind it waits.
    const Nanos again = stalled ? 1ms : std::min(backoff_, Nanos(5s));
    if (lost) backoff_ *= 2;
    for (Sent& s : wire_) s.arrival = std::max(s.arrival, world_.now() + again);
    last_arrival_ = std::max(last_arrival_, wire_.back().arrival);
    Pump();
    return;
  }
  if (peer && Deliver(*peer)) {
    Pump();
    return;
  }
  // Nobody there any more: the other kernel answers with a reset.
  pumping_ = false;
  if (!world_.IsCut(to, from)) BreakAfter(Latency(world_), "reset by peer");
}

bool Socket::Deliver(Socket& to) {
  if (to.Dead() || !to.usable() || to.fin_received_) return false;
  Sent sent = std::move(wire_.front());
  wire_.pop_front();
  const size_t size = sent.frame.header.size() + sent.frame.payload.size();
  queued_bytes_ -= size;
  if (Crc32c(sent.frame.payload.buffer().view()) != sent.checksum) {
    world_.Fail("buffer-reuse", "a payload changed after it was sent by " + node_.name() + " to " + peer_name_);
  }
  const Config& config = world_.config();
  if (config.payload_corruption > 0 && sent.frame.payload.size() > 0 &&
      world_.net_rng().Chance(config.payload_corruption)) {
    Buffer copy = Buffer::Copy(sent.frame.payload.buffer().view());
    copy.data()[world_.net_rng().Below(copy.size())] ^= static_cast<std::byte>(1u << world_.net_rng().Below(8));
    sent.frame.payload = Payload(std::move(copy));
  }
  world_.Mix(node_.index());
  world_.Mix(to.node_.index());
  world_.Mix(sent.frame.header);
  world_.Mix(sent.checksum);
  if (world_.Passes(node_, to.node_, sent.frame)) {
    to.inbox_bytes_ += size;
    to.inbox_.push_back(std::move(sent.frame));
    if (to.reader_ != nullptr) to.reader_->Set();
  }
  WakeDrained();
  return true;
}

void Socket::CloseByOwner() {
  if (closed_) return;
  closed_ = true;
  inbox_.clear();
  inbox_bytes_ = 0;
  Wake();
  if (Dead()) return;  // OnCrash has spoken for it
  node_.sim_net().sockets_.erase(id_);
  if (!broken_ && !pumping_) SendFin();
}

void Socket::SendFin() {
  if (fin_sent_ || broken_) return;
  fin_sent_ = true;
  world_.At(std::max(last_arrival_, world_.now() + Latency(world_)), [self = shared_from_this()] { self->ArriveFin(); });
}

void Socket::ArriveFin() {
  auto peer = peer_.lock();
  if (!peer || peer->Dead() || broken_) return;
  if (world_.IsCut(node_.index(), peer_node_->index())) {
    if (!silent_since_) silent_since_ = world_.now();
    if (world_.now() - *silent_since_ >= world_.config().give_up) return;  // the peer stays half-open
    world_.After(1s, [self = shared_from_this()] { self->ArriveFin(); });
    return;
  }
  peer->fin_received_ = true;
  peer->Wake();
}

void Socket::Break(std::string why) {
  if (broken_) return;
  broken_ = LostTo(peer_name_, why);
  wire_.clear();
  queued_bytes_ = 0;
  Wake();
}

void Socket::BreakAfter(Nanos delay, std::string why) {
  world_.After(delay, [self = shared_from_this(), why = std::move(why)] { self->Break(why); });
}

void Socket::Reset() {
  auto peer = peer_.lock();
  BreakAfter(Latency(world_), "reset");
  if (peer) peer->BreakAfter(Latency(world_), "reset");
}

void Socket::OnCrash(bool power_lost, Rng& rng) {
  reader_ = nullptr;
  drain_waiters_.clear();
  if (power_lost) {
    // What has left the machine travels on; the rest is gone with it.
    while (!wire_.empty() && rng.Chance(0.5)) wire_.pop_back();
    fin_sent_ = true;
    return;
  }
  if (rng.Chance(0.5)) {
    if (auto peer = peer_.lock()) peer->BreakAfter(Latency(world_), "reset by peer");
    wire_.clear();
    fin_sent_ = true;
  } else if (!pumping_) {
    SendFin();
  }
}

// ---- SimConn -------------------------------------------------------------------------------------

Task<> SimConn::Drained(size_t limit) {
  struct Guard {
    std::shared_ptr<Socket> socket;
    OneShot<>* one;
    ~Guard() { std::erase(socket->drain_waiters_, one); }
  };
  const std::shared_ptr<Socket> socket = socket_;  // the connection may go while this waits
  Env& env = node_;
  while (socket->usable() && socket->queued_bytes() > limit) {
    OneShot<> one(env);
    Guard guard{socket, &one};
    socket->drain_waiters_.push_back(&one);
    co_await one.Wait();
  }
}

Task<Result<Frame>> SimConn::Recv() {
  struct Guard {
    std::shared_ptr<Socket> socket;
    ~Guard() { socket->reader_ = nullptr; }
  };
  const std::shared_ptr<Socket> socket = socket_;
  Env& env = node_;
  PICKET_CHECK(socket->reader_ == nullptr);
  for (;;) {
    if (socket->closed_) co_return Fail(Code::kConnectionLost, LostTo(socket->peer_name_, "closed"));
    if (!socket->inbox_.empty()) {
      Frame frame = std::move(socket->inbox_.front());
      socket->inbox_.pop_front();
      socket->inbox_bytes_ -= frame.header.size() + frame.payload.size();
      co_return frame;
    }
    if (socket->broken_) co_return Fail(Code::kConnectionLost, *socket->broken_);
    if (socket->fin_received_) {
      socket->end_seen_ = true;
      co_return Fail(Code::kConnectionLost, LostTo(socket->peer_name_, "closed by peer"));
    }
    OneShot<> one(env);
    Guard guard{socket};
    socket->reader_ = &one;
    co_await one.Wait();
  }
}

// ---- SimListener ---------------------------------------------------------------------------------

SimListener::SimListener(Node& node, SimNet& net, uint16_t port) : node_(node), net_(net), port_(port) {
  net_.listeners_[port_] = this;
}

void SimListener::Close() {
  if (state_->closed) return;
  state_->closed = true;
  net_.listeners_.erase(port_);
  state_->backlog.clear();
  if (state_->waiter != nullptr) state_->waiter->Set();
}

void SimListener::Offer(std::unique_ptr<SimConn> conn) {
  state_->backlog.push_back(std::move(conn));
  if (state_->waiter != nullptr) state_->waiter->Set();
}

Task<Result<std::unique_ptr<FrameConn>>> SimListener::Accept() {
  struct Guard {
    std::shared_ptr<State> state;
    ~Guard() { state->waiter = nullptr; }
  };
  const std::shared_ptr<State> state = state_;  // the listener may go while this waits
  Env& env = node_;
  while (!state->closed && state->backlog.empty()) {
    OneShot<> one(env);
    Guard guard{state};
    state->waiter = &one;
    co_await one.Wait();
  }
  if (state->closed) co_return Fail(Code::kConnectionLost, "the listener is closed");
  std::unique_ptr<FrameConn> conn = std::move(state->backlog.front());
  state->backlog.pop_front();
  co_return conn;
}

// ---- SimNet --------------------------------------------------------------------------------------

std::shared_ptr<Socket> SimNet::MakeSocket(std::string peer_name) {
  auto socket = std::make_shared<Socket>(node_, next_socket_++, std::move(peer_name));
  sockets_[socket->id()] = socket;
  return socket;
}

Nanos SimNet::Transmit(size_t bytes) {
  const uint64_t rate = node_.world().config().network_bytes_per_s;
  free_at_ = std::max(free_at_, node_.world().now()) + Nanos(static_cast<int64_t>(bytes * 1'000'000'000ull / rate));
  return free_at_;
}

Result<std::unique_ptr<Listener>> SimNet::Listen(Endpoint at) {
  uint16_t port = at.port;
  while (port == 0) {
    if (!listeners_.contains(next_port_)) port = next_port_;
    ++next_port_;
    if (next_port_ == 0) next_port_ = kFirstEphemeralPort;
  }
  if (listeners_.contains(port)) {
    return Fail(Code::kUnavailable, "listen on " + at.ToString() + ": address already in use");
  }
  return std::unique_ptr<Listener>(new SimListener(node_, *this, port));
}

Task<Result<std::unique_ptr<FrameConn>>> SimNet::Connect(Endpoint to, Nanos timeout) {
  World& world = node_.world();
  Node* const peer = world.FindHost(to.host);
  if (peer == nullptr) {
    co_await node_.Sleep(Latency(world));
    co_return Fail(Code::kUnavailable, "connect to " + to.ToString() + ": no such host");
  }
  const Mono deadline = node_.Now() + timeout;
  Nanos retry = 1s;  // of the first packet
  for (;;) {
    co_await node_.Sleep(std::min(Latency(world), timeout));
    const bool reached = peer->powered() && !world.IsCut(node_.index(), peer->index()) &&
                         !world.IsCut(peer->index(), node_.index());
    if (reached && node_.Now() < deadline) break;
    if (node_.Now() + retry >= deadline) {
      if (node_.Now() < deadline) co_await node_.Sleep(deadline - node_.Now());
      co_return Fail(Code::kDeadlineExceeded, "connect to " + to.ToString() + ": no answer in time");
    }
    co_await node_.Sleep(retry);
    retry *= 2;
  }
  SimListener* listener = nullptr;
  if (peer->alive() && !peer->dying()) {
    auto it = peer->sim_net().listeners_.find(to.port);
    if (it != peer->sim_net().listeners_.end()) listener = it->second;
  }
  if (listener == nullptr) {
    co_await node_.Sleep(Latency(world));
    co_return Fail(Code::kUnavailable, "connect to " + to.ToString() + ": connection refused");
  }
  auto here = MakeSocket(to.ToString());
  auto there = peer->sim_net().MakeSocket(node_.host() + ":" + std::to_string(kFirstEphemeralPort + here->id() % 20000));
  Socket::Join(here, there, node_, *peer);
  listener->Offer(std::make_unique<SimConn>(*peer, std::move(there)));
  std::unique_ptr<FrameConn> conn = std::make_unique<SimConn>(node_, std::move(here));
  co_await node_.Sleep(Latency(world));
  co_return conn;
}

void SimNet::OnCrash(bool power_lost) {
  Rng& rng = node_.world().net_rng();
  for (auto& [id, weak] : sockets_) {
    if (auto socket = weak.lock()) socket->OnCrash(power_lost, rng);
  }
  sockets_.clear();
  for (auto& [port, listener] : listeners_) listener->state_->waiter = nullptr;
}

bool SimNet::ResetOne(uint64_t pick) {
  if (sockets_.empty()) return false;
  auto it = sockets_.begin();
  std::advance(it, static_cast<ptrdiff_t>(pick % sockets_.size()));
  auto socket = it->second.lock();
  if (!socket) return false;
  socket->Reset();
  return true;
}

}  // namespace picket::sim
