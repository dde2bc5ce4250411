// A simulated world: virtual time, a seeded scheduler, nodes, the cables between them. One thread, and
// the same seed and configuration give the same run, witnessed by hash().
//
// 1. Only the event heap advances time, and only when no task is ready.
// 2. Every draw comes from a stream named after its purpose, so removing a fault does not re-roll
//    unrelated draws.
// 3. Nothing is ordered by an address.
#pragma once

#include <boost/asio/execution_context.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/rng.h"
#include "common/env/env.h"
#include "common/env/net.h"
#include "tests/sim/config.h"

namespace picket::sim {

class Node;

// A broken promise. The first one ends the run.
struct Violation {
  Nanos time{};
  std::string invariant;
  std::string detail;
};

class World {
 public:
  explicit World(Config config = {}, uint64_t seed = 1);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const Config& config() const { return config_; }
  Config& mutable_config() { return config_; }
  uint64_t seed() const { return seed_; }
  Nanos now() const { return now_; }
  uint64_t hash() const { return hash_; }
  uint64_t steps() const { return steps_; }

  // A machine that is switched off; its host name is "node-<n>", n counting from 0.
  Node& AddNode(std::string name);
  Node& node(size_t index) { return *nodes_[index]; }
  size_t node_count() const { return nodes_.size(); }
  Node* FindHost(std::string_view host);

  // Kills every node that is up. At the latest the destructor does.
  void ShutDown();

  // A generator of its own for `purpose`: depends on the seed and the name only.
  Rng Stream(std::string_view purpose) const;
  Rng& scheduler_rng() { return scheduler_rng_; }
  Rng& net_rng() { return net_rng_; }
  bool Buggify(std::string_view site);

  // Runs `fn` at `when`, outside of every node.
  void At(Nanos when, Fn fn);
  void After(Nanos delay, Fn fn) { At(now_ + delay, std::move(fn)); }

  // Runs one task, or advances to the next event. False when nothing is left to do.
  bool Step();
  // Runs until `done()` holds (true), or `limit` has passed, nothing is left or the run failed (false).
  bool RunUntil(const std::function<bool()>& done, Nanos limit = 1h);
  // Runs for `duration` of virtual time, or until the run fails.
  void RunFor(Nanos duration);

  // Directed cuts of the network: what `from` sends does not reach `to`.
  void Cut(const Node& from, const Node& to);
  void Heal(const Node& from, const Node& to);
  void HealAll();
  bool IsCut(uint32_t from, uint32_t to) const { return cuts_.contains({from, to}); }

  // Fails the run. `invariant` is a short stable name: shrinking keeps only runs that fail the same way.
  void Fail(std::string invariant, std::string detail);
  bool failed() const { return violation_.has_value(); }
  const std::optional<Violation>& violation() const { return violation_; }

  // Asked about every frame as it arrives; false loses it. What follows on the connection still comes, as if
  // after a reconnect: for scenes that need one certain message lost, or a copy of it.
  using Tap = std::function<bool(Node& from, Node& to, const Frame& frame)>;
  void SetTap(Tap tap) { tap_ = std::move(tap); }
  bool Passes(Node& from, Node& to, const Frame& frame) { return !tap_ || tap_(from, to, frame); }

  // Told of every protocol event of every node, at the moment it happens.
  using Observer = std::function<void(Node&, const ProtocolEvent&)>;
  void AddObserver(Observer observer) { observers_.push_back(std::move(observer)); }
  // Told of every death of a node, when its tasks are gone; `power`: un-synced bytes are lost.
  using DeathObserver = std::function<void(Node&, bool power)>;
  void AddDeathObserver(DeathObserver observer) { death_observers_.push_back(std::move(observer)); }

  // The last lines of what happened: logs, faults, protocol events.
  void Note(const Node* node, LogLevel level, std::string_view line);
  const std::deque<std::string>& log() const { return log_; }

  void Mix(uint64_t v) {
    hash_ = (hash_ ^ v) * 1099511628211ull;
    hash_ ^= hash_ >> 29;
  }
  void Mix(std::string_view bytes);

 private:
  friend class Node;
  struct Event {
    Nanos when{};
    uint64_t sequence = 0;
    Node* node = nullptr;  // a node's timer, by id; else `fn`
    uint32_t incarnation = 0;
    TimerId timer = 0;
    Fn fn;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.when != b.when ? a.when > b.when : a.sequence > b.sequence;
    }
  };
  struct Ready {
    Node* node = nullptr;
    uint64_t sequence = 0;
    Fn fn;
  };

  void Push(Event event);
  void MakeReady(Node* node, Fn fn);
  void DropReady(const Node* node);
  void RunReady();
  void RunEvent();
  void Observe(Node& node, const ProtocolEvent& event);

  Config config_;
  const uint64_t seed_;
  Rng scheduler_rng_;
  Rng net_rng_;
  Rng buggify_rng_;
  Nanos now_{};
  uint64_t sequence_ = 0;
  uint64_t steps_ = 0;
  uint64_t hash_ = 1469598103934665603ull;
  std::vector<Event> heap_;
  std::vector<Ready> ready_;
  size_t ready_head_ = 0;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::set<std::pair<uint32_t, uint32_t>> cuts_;
  Tap tap_;
  std::vector<Observer> observers_;
  std::vector<DeathObserver> death_observers_;
  std::deque<std::string> log_;
  std::optional<Violation> violation_;

 public:
  // What executors of this world answer as their Asio context; nothing runs in it.
  boost::asio::execution_context context;
};

std::string_view KindName(ProtocolEvent::Kind kind);

}  // namespace picket::sim
