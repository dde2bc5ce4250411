// One machine of a world: power, clock, disk and network card, and the one process on it, whose Env it
// is. The disk outlives the process; everything else of the process dies with its incarnation.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/env/env.h"
#include "common/env/one_shot.h"
#include "tests/sim/disk.h"
#include "tests/sim/world.h"

namespace picket::sim {

class SimFs;
class SimNet;

// The root object of what runs on a node. Destroyed after every task of its incarnation.
struct Process {
  virtual ~Process() = default;
};

// Makes any class a Process.
template <class T>
struct Running final : Process {
  template <class... Args>
  explicit Running(Args&&... args) : object(std::forward<Args>(args)...) {}
  T object;
};

class Node final : public Env {
 public:
  using Factory = std::function<std::unique_ptr<Process>(Env&)>;
  enum class Death {
    kProcess,  // kill -9: the page cache survives, the kernel closes the connections
    kPower,    // un-synced sectors and names may be lost or torn; peers hear nothing
  };

  Node(World& world, uint32_t index, std::string name);
  ~Node() override;

  World& world() { return world_; }
  uint32_t index() const { return index_; }
  const std::string& name() const { return name_; }
  std::string host() const { return "node-" + std::to_string(index_); }
  uint32_t incarnation() const { return incarnation_; }
  bool alive() const { return alive_; }
  bool powered() const { return powered_; }
  bool paused() const { return paused_; }
  size_t timer_count() const { return timers_.size(); }  // armed and not yet fired or cancelled
  SimDisk& disk() { return disk_; }
  SimNet& sim_net() { return *net_; }
  Process* process() { return process_.get(); }
  // The object inside of a Running<T> process; null when the node is down.
  template <class T>
  T* As() {
    auto* running = dynamic_cast<Running<T>*>(process_.get());
    return running == nullptr ? nullptr : &running->object;
  }

  // Boots and runs the factory's process (none: an empty one). REQUIRES: not alive.
  void Start(Factory factory = {});
  // Ends the incarnation. From inside one of its own tasks: takes effect when that task suspends, and
  // until then its I/O fails and its messages go nowhere.
  void Crash(Death death);
  // Crash if alive, then Start with the last factory.
  void Restart(Death death = Death::kProcess);
  // SIGSTOP and SIGCONT: tasks and timers wait; the kernel goes on taking bytes.
  void Pause();
  void Resume();
  // The rate of this node's clock, in parts per billion fast.
  void SetDrift(int64_t ppb);
  void JumpWall(Nanos by) { wall_offset_ += by; }
  // True while an incarnation is being torn down or has been condemned: its effects no longer count.
  bool dying() const { return !alive_ || condemned_.has_value(); }

  // Env.
  Executor executor() override;
  Mono Now() override { return Mono(ToLocal(world_.now())); }
  int64_t WallNanos() override;
  uint64_t Random() override { return rng_.Next(); }
  std::string RandomBytes(size_t n) override;
  TimerId At(Mono when, Fn fn) override;
  void Cancel(TimerId id) noexcept override;
  Task<> Offload(Fn fn) override;
  Buffer Allocate(size_t size) override { return Buffer::Allocate(size); }
  Net& net() override;
  Fs& fs() override;
  void Log(LogLevel level, std::string_view message) override;
  bool LogEnabled(LogLevel level) override { return level >= world_.config().log_level; }
  void Trace(const ProtocolEvent& event) override;
  void Fatal(std::string what) override;
  bool Buggify(std::string_view site) override;

 private:
  friend class World;
  friend class SimExecutor;
  struct Timer {
    Mono when;
    Fn fn;
  };

  void Post(uint32_t incarnation, Fn fn);
  void Arm(TimerId id, Mono when);
  void Fire(TimerId id);
  void Die(Death death);
  void EmptyGraveyard();
  Nanos ToLocal(Nanos world) const;
  Nanos ToWorld(Nanos local) const;  // rounded up: ToLocal(ToWorld(x)) >= x

  World& world_;
  const uint32_t index_;
  const std::string name_;
  Rng rng_;
  Rng clock_rng_;
  SimDisk disk_;

  uint32_t incarnation_ = 0;
  bool alive_ = false;
  bool powered_ = false;
  bool paused_ = false;
  bool running_ = false;       // one of its tasks is on the stack
  bool tearing_down_ = false;
  std::optional<Death> condemned_;
  Factory factory_;
  std::unique_ptr<SimNet> net_;
  std::unique_ptr<SimFs> fs_;
  std::unique_ptr<Process> process_;

  int64_t drift_ppb_ = 0;
  Nanos world_base_{};
  Nanos local_base_{};
  Nanos wall_offset_{};

  std::map<TimerId, Timer> timers_;
  TimerId next_timer_ = 1;
  std::vector<Fn> held_;     // ready while paused
  std::list<Fn> graveyard_;  // posted by unwinding frames of a dead incarnation
};

namespace internal {
template <class T>
struct TaskResult {
  std::optional<T> value;
};
template <class T>
Task<> RunAndKeep(std::shared_ptr<TaskResult<T>> result, Task<T> task) {
  T value = co_await std::move(task);
  result->value.emplace(std::move(value));
}
inline Task<Unit> AsUnit(Task<> task) {
  co_await std::move(task);
  co_return Unit{};
}
}  // namespace internal

// Runs a task on the node until it ends, and the world with it. Empty when the node died or `limit`
// passed first. Boots a node that is off.
template <class T>
std::optional<T> RunTask(World& world, Node& node, Task<T> task, Nanos limit = 1h) {
  if (!node.alive()) node.Start();
  auto result = std::make_shared<internal::TaskResult<T>>();
  node.Spawn(internal::RunAndKeep<T>(result, std::move(task)));
  world.RunUntil([&] { return result->value.has_value() || result.use_count() == 1; }, limit);
  if (!result->value) world.RunFor(0s);  // what it threw is on its way to Fatal
  return std::move(result->value);
}
// True when the task ended.
inline bool RunTask(World& world, Node& node, Task<> task, Nanos limit = 1h) {
  return RunTask<Unit>(world, node, internal::AsUnit(std::move(task)), limit).has_value();
}

}  // namespace picket::sim
