#include "tests/sim/world.h"

#include <cstdio>

#include "common/base/crc32c.h"
#include "tests/sim/node.h"

namespace picket::sim {
namespace {

uint64_t HashName(std::string_view name) {
  uint64_t h = 14695981039346656037ull;
  for (char c : name) h = (h ^ static_cast<uint8_t>(c)) * 1099511628211ull;
  return h;
}

}  // namespace

World::World(Config config, uint64_t seed)
    : config_(config),
      seed_(seed),
      scheduler_rng_(Stream("scheduler")),
      net_rng_(Stream("net")),
      buggify_rng_(Stream("buggify")) {}

World::~World() {
  ShutDown();
  ready_.clear();
  heap_.clear();
}

void World::ShutDown() {
  for (auto& node : nodes_) {
    if (node->alive()) node->Crash(Node::Death::kProcess);
  }
}

Rng World::Stream(std::string_view purpose) const {
  Rng mixer(seed_ ^ HashName(purpose));
  return Rng(mixer.Next());
}

Node& World::AddNode(std::string name) {
  nodes_.push_back(std::make_unique<Node>(*this, static_cast<uint32_t>(nodes_.size()), std::move(name)));
  return *nodes_.back();
}

Node* World::FindHost(std::string_view host) {
  for (auto& node : nodes_) {
    if (node->host() == host) return node.get();
  }
  return nullptr;
}

bool World::Buggify(std::string_view site) {
  if (config_.buggify_site <= 0) return false;
  // Whether a site is on depends on the seed and its name, not on who came by first.
  Rng decision = Stream(site);
  return decision.Chance(config_.buggify_site) && buggify_rng_.Chance(config_.buggify_fire);
}

void World::At(Nanos when, Fn fn) {
  Push({.when = std::max(when, now_), .sequence = sequence_++, .fn = std::move(fn)});
}

void World::Push(Event event) {
  heap_.push_back(std::move(event));
  std::push_heap(heap_.begin(), heap_.end(), Later{});
}

void World::MakeReady(Node* node, Fn fn) {
  ready_.push_back({.node = node, .sequence = sequence_++, .fn = std::move(fn)});
}

void World::DropReady(const Node* node) {
  std::vector<Fn> dead;
  std::vector<Ready> kept;
  for (size_t i = ready_head_; i < ready_.size(); ++i) {
    if (ready_[i].node == node) {
      dead.push_back(std::move(ready_[i].fn));
    } else {
      kept.push_back(std::move(ready_[i]));
    }
  }
  ready_ = std::move(kept);
  ready_head_ = 0;
}  // `dead` unwinds here, with the queue in order again

bool World::Step() {
  if (ready_head_ < ready_.size()) {
    RunReady();
    return true;
  }
  if (heap_.empty()) return false;
  RunEvent();
  return true;
}

void World::RunReady() {
  if (config_.shuffle) {
    const size_t pick = ready_head_ + scheduler_rng_.Below(ready_.size() - ready_head_);
    std::swap(ready_[pick], ready_[ready_head_]);
  }
  Ready task = std::move(ready_[ready_head_++]);
  if (ready_head_ == ready_.size()) {
    ready_.clear();
    ready_head_ = 0;
  } else if (ready_head_ > 4096) {
    ready_.erase(ready_.begin(), ready_.begin() + static_cast<ptrdiff_t>(ready_head_));
    ready_head_ = 0;
  }
  Node& node = *task.node;
  if (node.paused_) {
    node.held_.push_back(std::move(task.fn));
    return;
  }
  ++steps_;
  Mix(static_cast<uint64_t>(now_.count()));
  Mix(node.index());
  Mix(task.sequence);
  node.running_ = true;
  task.fn();
  task.fn = nullptr;
  node.running_ = false;
  if (node.condemned_) node.Die(*node.condemned_);
}

void World::RunEvent() {
  std::pop_heap(heap_.begin(), heap_.end(), Later{});
  Event event = std::move(heap_.back());
  heap_.pop_back();
  if (event.node != nullptr) {
    if (event.node->incarnation_ != event.incarnation || !event.node->timers_.contains(event.timer)) return;
    now_ = event.when;
    event.node->Fire(event.timer);
    return;
  }
  now_ = event.when;
  ++steps_;
  Mix(static_cast<uint64_t>(now_.count()));
  Mix(event.sequence);
  event.fn();
}

bool World::RunUntil(const std::function<bool()>& done, Nanos limit) {
  const Nanos end = now_ + limit;
  while (!failed()) {
    if (done()) return true;
    if (ready_head_ == ready_.size() && (heap_.empty() || heap_.front().when > end)) {
      now_ = std::max(now_, end);
      return false;
    }
    Step();
  }
  return false;
}

void World::RunFor(Nanos duration) {
  RunUntil([] { return false; }, duration);
}

void World::Cut(const Node& from, const Node& to) { cuts_.insert({from.index(), to.index()}); }
void World::Heal(const Node& from, const Node& to) { cuts_.erase({from.index(), to.index()}); }
void World::HealAll() { cuts_.clear(); }

void World::Fail(std::string invariant, std::string detail) {
  Note(nullptr, LogLevel::kError, "VIOLATION " + invariant + ": " + detail);
  if (!violation_) violation_ = Violation{now_, std::move(invariant), std::move(detail)};
}

void World::Note(const Node* node, LogLevel level, std::string_view line) {
  static constexpr const char* kLetters = "DIWE";
  std::string text =
      fmt::format("{:>13.6f} {} {:<10} {}", static_cast<double>(now_.count()) * 1e-9,
                  kLetters[static_cast<size_t>(level)], node == nullptr ? std::string("world") : node->name(), line);
  if (config_.print && now_ >= config_.print_from) std::fprintf(stderr, "%s\n", text.c_str());
  log_.push_back(std::move(text));
  if (log_.size() > config_.log_ring_lines) log_.pop_front();
}

void World::Observe(Node& node, const ProtocolEvent& e) {
  Mix(static_cast<uint64_t>(e.kind));
  for (uint64_t v : {e.server.value, e.chunk.value, e.version.value, e.generation.value, e.length, e.value}) Mix(v);
  if (LogLevel::kDebug >= config_.log_level) {
    Note(&node, LogLevel::kDebug,
         fmt::format("{} server {} chunk {} version {} generation {} length {} value {}", KindName(e.kind),
                     ToString(e.server), ToString(e.chunk), e.version.ToString(), e.generation.ToString(), e.length,
                     e.value));
  }
  for (auto& observer : observers_) observer(node, e);
}

void World::Mix(std::string_view bytes) { Mix(uint64_t{Crc32c(bytes)} << 32 | (bytes.size() & 0xffffffff)); }

std::string_view KindName(ProtocolEvent::Kind kind) {
  using Kind = ProtocolEvent::Kind;
  switch (kind) {
    case Kind::kEpochActivated: return "epoch activated";
    case Kind::kVersionMinted: return "version minted";
    case Kind::kVersionCommitted: return "version committed";
    case Kind::kLeaseGranted: return "lease granted";
    case Kind::kGenerationMinted: return "generation minted";
    case Kind::kMarkRaised: return "mark raised";
    case Kind::kReplicaCreated: return "replica created";
    case Kind::kReplicaDeleted: return "replica deleted";
    case Kind::kMutationApplied: return "mutation applied";
    case Kind::kReplicaTruncated: return "replica truncated";
    case Kind::kReplicaSealed: return "replica sealed";
    case Kind::kMutationRefused: return "mutation refused";
    case Kind::kAcknowledged: return "acknowledged";
    case Kind::kChunkSealed: return "chunk sealed";
    case Kind::kOverwriteApplied: return "overwrite applied";
    case Kind::kChunkTruncated: return "chunk truncated";
    case Kind::kRecoveryBegun: return "recovery begun";
    case Kind::kRecordAcknowledged: return "record acknowledged";
  }
  return "?";
}

}  // namespace picket::sim
