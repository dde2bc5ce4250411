#include "tests/sim/node.h"

#include "tests/sim/executor.h"
#include "tests/sim/fs.h"
#include "tests/sim/net.h"

namespace picket::sim {
namespace {

constexpr int64_t kBillion = 1'000'000'000;
constexpr Nanos kWallOrigin = std::chrono::seconds(1'800'000'000);  // an arbitrary day in 2027

}  // namespace

Node::Node(World& world, uint32_t index, std::string name)
    : world_(world),
      index_(index),
      name_(std::move(name)),
      rng_(world.Stream("node " + std::to_string(index))),
      clock_rng_(world.Stream("clock " + std::to_string(index))),
      disk_(*this),
      drift_ppb_(clock_rng_.Range(-world.config().drift_ppb_max, world.config().drift_ppb_max)) {}

Node::~Node() { PICKET_CHECK(!alive_); }

void Node::Start(Factory factory) {
  PICKET_CHECK(!alive_ && !tearing_down_);
  factory_ = std::move(factory);
  ++incarnation_;
  alive_ = powered_ = true;
  paused_ = false;
  condemned_.reset();
  world_base_ = world_.now();
  local_base_ = Nanos(clock_rng_.Range(0, world_.config().skew_max.count()));
  world_.Mix(uint64_t{index_} * 1'000'003 + incarnation_);
  world_.Note(this, LogLevel::kInfo, fmt::format("starts, incarnation {}", incarnation_));
  disk_.Mount();
  net_ = std::make_unique<SimNet>(*this);
  fs_ = std::make_unique<SimFs>(*this);
  if (factory_) process_ = factory_(*this);
}

void Node::Crash(Death death) {
  if (!alive_ || tearing_down_ || condemned_) return;
  world_.Note(this, LogLevel::kInfo, death == Death::kPower ? "loses power" : "is killed");
  condemned_ = death;
  // The tasks of this node may be on the stack: the world calls Die when they have left it.
  if (!running_) Die(death);
}

void Node::Die(Death death) {
  PICKET_CHECK(alive_ && !tearing_down_);
  tearing_down_ = true;
  world_.Mix(uint64_t{index_} ^ (death == Death::kPower ? 0xdead'0000ull : 0xdead'1111ull));
  net_->OnCrash(death == Death::kPower);
  fs_->OnCrash();
  alive_ = paused_ = false;
  condemned_.reset();
  ++incarnation_;

  // Frames first, wherever they wait, then the objects they used. Unwinding posts to the executor of
  // the dead incarnation, which fills the graveyard.
  { auto timers = std::exchange(timers_, {}); }
  { auto held = std::exchange(held_, {}); }
  world_.DropReady(this);
  EmptyGraveyard();
  process_.reset();
  EmptyGraveyard();
  fs_.reset();
  net_.reset();

  if (death == Death::kPower) {
    powered_ = false;
    disk_.LosePower();
  }
  tearing_down_ = false;
  for (auto& observer : world_.death_observers_) observer(*this, death == Death::kPower);
}

void Node::EmptyGraveyard() {
  AbandonAll();
  while (!graveyard_.empty()) {
    { auto dead = std::move(graveyard_.front()); graveyard_.pop_front(); }
    AbandonAll();
  }
}

void Node::Restart(Death death) {
  if (alive_) Crash(death);
  Start(factory_);
}

void Node::Pause() {
  if (!alive_ || paused_) return;
  world_.Note(this, LogLevel::kInfo, "pauses");
  world_.Mix(uint64_t{index_} ^ 0xaa00ull);
  paused_ = true;
}

void Node::Resume() {
  if (!paused_) return;
  world_.Note(this, LogLevel::kInfo, "resumes");
  world_.Mix(uint64_t{index_} ^ 0xbb00ull);
  paused_ = false;
  for (auto& fn : std::exchange(held_, {})) world_.MakeReady(this, std::move(fn));
}

void Node::SetDrift(int64_t ppb) {
  const Nanos local = ToLocal(world_.now());
  world_base_ = world_.now();
  local_base_ = local;
  drift_ppb_ = ppb;
  for (auto& [id, timer] : timers_) Arm(id, timer.when);
}

Nanos Node::ToLocal(Nanos world) const {
  const int64_t passed = (world - world_base_).count();
  return local_base_ + Nanos(passed + static_cast<int64_t>(__int128{passed} * drift_ppb_ / kBillion));
}

Nanos Node::ToWorld(Nanos local) const {
  const int64_t passed = (local - local_base_).count();
  Nanos world = world_base_ + Nanos(static_cast<int64_t>(__int128{passed} * kBillion / (kBillion + drift_ppb_)));
  while (ToLocal(world) < local) ++world;
  return world;
}

int64_t Node::WallNanos() { return (kWallOrigin + world_.now() + wall_offset_).count(); }

std::string Node::RandomBytes(size_t n) {
  std::string bytes(n, '\0');
  for (char& c : bytes) c = static_cast<char>(rng_.Next() >> 56);
  return bytes;
}

Executor Node::executor() { return SimExecutor(this, incarnation_); }

void Node::Post(uint32_t incarnation, Fn fn) {
  if (alive_ && !tearing_down_ && incarnation == incarnation_) {
    world_.MakeReady(this, std::move(fn));
  } else if (tearing_down_) {
    graveyard_.push_back(std::move(fn));
  }
}

TimerId Node::At(Mono when, Fn fn) {
  if (!alive_ || tearing_down_) return 0;
  const TimerId id = next_timer_++;
  timers_.emplace(id, Timer{when, std::move(fn)});
  Arm(id, when);
  return id;
}

void Node::Arm(TimerId id, Mono when) {
  const Nanos local = std::max(when.time_since_epoch(), ToLocal(world_.now()));
  world_.Push({.when = std::max(world_.now(), ToWorld(local)),
               .sequence = world_.sequence_++,
               .node = this,
               .incarnation = incarnation_,
               .timer = id});
}

void Node::Cancel(TimerId id) noexcept {
  auto it = timers_.find(id);
  if (it == timers_.end()) return;
  auto dead = std::move(it->second);
  timers_.erase(it);
}

void Node::Fire(TimerId id) {
  auto it = timers_.find(id);
  if (it->second.when > Now()) return;  // armed anew when the rate of the clock changed
  Fn fn = std::move(it->second.fn);
  timers_.erase(it);
  world_.MakeReady(this, std::move(fn));
}

Task<> Node::Offload(Fn fn) {
  // The worker gets to it a little later; meanwhile other tasks run.
  co_await Sleep(fs_->OffloadDelay());
  co_await Sleep(fs_->RunOffloaded(std::move(fn)));
}

Net& Node::net() { return *net_; }
Fs& Node::fs() { return *fs_; }

void Node::Log(LogLevel level, std::string_view message) {
  if (LogEnabled(level)) world_.Note(this, level, message);
}

void Node::Trace(const ProtocolEvent& event) {
  if (!dying()) world_.Observe(*this, event);
}

void Node::Fatal(std::string what) {
  if (!dying()) world_.Fail("fatal", name_ + ": " + what);
}

bool Node::Buggify(std::string_view site) { return !dying() && world_.Buggify(site); }

}  // namespace picket::sim
