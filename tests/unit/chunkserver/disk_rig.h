// One replica store on the disk of a simulated node, without the server: for crashes at every step.
#pragma once

#include <gtest/gtest.h>

#include "chunkserver/replica_store.h"
#include "common/base/crc32c.h"
#include "tests/sim/node.h"
#include "tests/unit/chunkserver/bytes.h"

namespace picket::cs::disk_test {

using sim::Node;
using sim::RunTask;

inline constexpr ChunkId kChunk(0x300000001);
inline constexpr ServerId kServer(7);
inline constexpr Generation kSession(3, 1);

inline std::vector<uint32_t> BlocksOf(std::string_view content) { return PieceCrcs(0, content); }

// A server's directory on one node, without the server.
class Rig {
 public:
  explicit Rig(uint64_t seed, sim::Config config = {}) : world(config, seed), node(world.AddNode("a")) {
    EXPECT_TRUE(RunTask(world, node, Prepare(&node))->has_value());
    Boot();
  }
  ~Rig() { Down(Node::Death::kProcess); }

  void Down(Node::Death death) {
    if (node.alive()) node.Crash(death);
    store.reset();
    state.reset();
  }
  // Whatever happened before: a new process on the disk.
  void Boot() {
    store.reset();
    state.reset();
    if (!node.alive()) node.Start();
    state = std::make_unique<ServerState>(node);
    store = std::make_unique<ReplicaStore>(node, StoreOptions());
    auto up = RunTask(world, node, OpenAll(state.get(), store.get()));
    ASSERT_TRUE(up && *up) << (up && !*up ? up->error().ToString() : "died");
  }
  static ReplicaStore::Options StoreOptions() {
    ReplicaStore::Options options;
    options.dir = "d";
    options.cluster = "c1";
    return options;
  }
  static Task<Status> OpenAll(ServerState* state, ReplicaStore* store) {
    PICKET_CO_TRY(co_await state->Open("d/server_state", kServer));
    co_return co_await store->Open(state);
  }
  Slot NewSlot() const {
    Slot s;
    s.version = Version(3, 1);
    s.generation = kSession;
    s.state = ReplicaState::kOpen;
    s.raised_in = state->incarnation();
    s.instance = InstanceId(1);
    s.chunk_size = 1 << 20;
    return s;
  }
  template <class T>
  std::optional<T> Run(Task<T> task) {
    return RunTask(world, node, std::move(task));
  }
  ReplicaPtr replica() { return store->Find(kChunk); }
  std::string Content() {
    auto file = replica()->file;
    EXPECT_TRUE(*Run(store->Use(replica())));
    if (file->length() == 0) return "";
    auto bytes = Run(file->Read(0, file->length()));
    return bytes && *bytes ? std::string((*bytes)->view()) : "unreadable";
  }

  sim::World world;
  Node& node;
  std::unique_ptr<ServerState> state;
  std::unique_ptr<ReplicaStore> store;

 private:
  static Task<Status> Prepare(Env* env) {
    PICKET_CO_TRY(co_await env->fs().MakeDir("d"));
    PICKET_CO_TRY(co_await ReplicaStore::Init(env, "d"));
    PICKET_CO_TRY(co_await WriteFileAtomic(&env->fs(), "d/server_state", ServerState::Initial(kServer)));
    co_return co_await env->fs().SyncDir(".");
  }
};

inline Marking At(Rig* rig, Version version) {
  Marking m;
  m.version = version;
  m.generation = kSession;
  m.raised_in = rig->state->incarnation();
  return m;
}

}  // namespace picket::cs::disk_test
