// Start-up on directories as they are found in the field; deletion; quarantine; open files.
#include "chunkserver/replica_store.h"

#include <gtest/gtest.h>

#include "common/base/crc32c.h"
#include "tests/sim/node.h"

namespace picket::cs {
namespace {

using sim::Node;
using sim::RunTask;

constexpr ServerId kServer(7);

Task<Status> Prepare(Env* env) {
  PICKET_CO_TRY(co_await env->fs().MakeDir("d"));
  PICKET_CO_TRY(co_await ReplicaStore::Init(env, "d"));
  PICKET_CO_TRY(co_await WriteFileAtomic(&env->fs(), "d/server_state", ServerState::Initial(kServer)));
  co_return co_await env->fs().SyncDir(".");
}
Task<Status> OpenAll(ServerState* state, ReplicaStore* store) {
  PICKET_CO_TRY(co_await state->Open("d/server_state", kServer));
  co_return co_await store->Open(state);
}
Task<Status> WriteBytes(Env* env, std::string path, std::string content) {
  co_return co_await WriteFileAtomic(&env->fs(), "d/replicas/" + path, content);
}

class ReplicaStoreTest : public testing::Test {
 protected:
  ReplicaStoreTest() : world_({}, 3), node_(world_.AddNode("a")) {
    EXPECT_TRUE(RunTask(world_, node_, Prepare(&node_))->has_value());
    Boot();
  }
  ~ReplicaStoreTest() override {
    if (node_.alive()) node_.Crash(Node::Death::kProcess);
  }
  void Boot(Node::Death death = Node::Death::kProcess, size_t max_loaded = 400) {
    if (node_.alive()) node_.Crash(death);
    store_.reset();
    state_.reset();
    node_.Start();
    state_ = std::make_unique<ServerState>(node_);
    ReplicaStore::Options options;
    options.dir = "d";
    options.cluster = "c1";
    options.quarantined_for = 1h;
    options.max_loaded = max_loaded;
    store_ = std::make_unique<ReplicaStore>(node_, options);
    auto up = RunTask(world_, node_, OpenAll(state_.get(), store_.get()));
    ASSERT_TRUE(up && *up);
  }
  ReplicaPtr Create(uint64_t chunk, std::string_view content = "", Version version = Version(3, 1)) {
    Slot s;
    s.version = version;
    s.generation = Generation(3, 1);
    s.state = ReplicaState::kOpen;
    s.raised_in = state_->incarnation();
    s.instance = InstanceId(chunk * 10);
    s.chunk_size = 1 << 20;
    s.epoch = Epoch{3, 33};
    s.revision = chunk;
    ReplicaPtr replica = store_->FindOrAdd(ChunkId(chunk));
    auto made = Run(store_->Create(replica, s));
    EXPECT_TRUE(made && *made) << made->error().ToString();
    if (!content.empty()) {
      Buffer bytes = Buffer::Copy(content);
      EXPECT_TRUE(*Run(replica->file->Append(bytes, {Crc32c(content)}, false)));
    }
    return replica;
  }
  template <class T>
  std::optional<T> Run(Task<T> task) {
    return RunTask(world_, node_, std::move(task));
  }
  void Write(std::string path, std::string content) { EXPECT_TRUE(*Run(WriteBytes(&node_, path, content))); }
  std::vector<std::string> FilesIn(const std::string& dir) {
    std::vector<std::string> out;
    for (const std::string& f : node_.disk().Files()) {
      if (f.starts_with(dir + "/")) out.push_back(f.substr(dir.size() + 1));
    }
    return out;
  }
  std::string MetaOf(uint64_t chunk) {
    return *node_.disk().Contents("d/replicas/" + ReplicaFile::MetaName(ChunkId(chunk)));
  }

  sim::World world_;
  Node& node_;
  std::unique_ptr<ServerState> state_;
  std::unique_ptr<ReplicaStore> store_;
};

TEST_F(ReplicaStoreTest, WhatIsNotAReplicaIsSetAsideAndNeverRemoved) {
  Create(1, "good");
  const std::string good = MetaOf(1);
  Write("notes.txt", "keep me");
  Write("0000000000000002.meta", "garbage" + std::string(9000, 'x'));
  Write("0000000000000002.data", "bytes of 2");
  Write("0000000000000003.meta", good);  // another chunk's
  Write("0000000000000004.data", "bytes without a meta file");
  Write("0000000000000005.meta", good.substr(0, 1000));  // cut short
  Slot foreign = *DecodeSlot(good);
  foreign.cluster = "c2";
  foreign.chunk = ChunkId(6);
  Write("0000000000000006.meta", EncodeSlot(foreign) + std::string(12288, '\0'));
  Write("0000000000000006.data", "");
  Write("00000000000000AB.meta", good);  // not how we spell it

  Boot();
  EXPECT_EQ(store_->List(ChunkId(), 100).size(), 1u);
  EXPECT_EQ(FilesIn("d/replicas").size(), 2u);
  EXPECT_EQ(FilesIn("d/aside").size(), 9u);
  for (const std::string& name : FilesIn("d/aside")) EXPECT_TRUE(name.ends_with(".2")) << name;
  EXPECT_EQ(node_.disk().Contents("d/aside/notes.txt.2"), "keep me");
  EXPECT_EQ(node_.disk().Contents("d/aside/0000000000000004.data.2"), "bytes without a meta file");
}

TEST_F(ReplicaStoreTest, AnInterruptedCreationLeavesNothing) {
  Write("0000000000000002.data", "");
  Write("0000000000000003.data", "");
  Write("0000000000000003.meta", std::string(16384, '\0'));
  Write("0000000000000004.meta", "");
  Boot();
  EXPECT_TRUE(FilesIn("d/replicas").empty());
  EXPECT_TRUE(FilesIn("d/aside").empty());
}

TEST_F(ReplicaStoreTest, ThousandReplicasAreReadWithoutTheirBytes) {
  for (uint64_t c = 1; c <= 300; ++c) {
    ReplicaPtr r = Create(c, "content");
    ASSERT_TRUE(*Run(r->file->Seal(Generation(3, 1), true)));
  }
  Boot();
  EXPECT_EQ(store_->totals().replicas, 300u);
  EXPECT_EQ(store_->totals().bytes, 300u * 7);
  ChunkId after;
  size_t seen = 0;
  for (auto page = store_->List(after, 70); !page.empty(); page = store_->List(after, 70)) {
    for (const auto& r : page) {
      EXPECT_GT(r->chunk, after);
      after = r->chunk;
      ++seen;
    }
  }
  EXPECT_EQ(seen, 300u);
  // The highest revision that an order wrote is part of the mark (F12).
  ASSERT_TRUE(*Run(state_->RaiseEpoch(Epoch{3, 33})));
  Boot();
  EXPECT_EQ(state_->mark().revision, 300u);
}

TEST_F(ReplicaStoreTest, DeletionLeavesATombstoneAndTheBytesInQuarantine) {
  ReplicaPtr replica = Create(1, "precious");
  ASSERT_TRUE(*Run(store_->Delete(replica, {})));
  EXPECT_EQ(replica->marks().state, ReplicaState::kTombstone);
  EXPECT_TRUE(store_->List(ChunkId(), 10).empty());
  EXPECT_EQ(FilesIn("d/quarantine").size(), 2u);
  EXPECT_EQ(node_.disk().Contents("d/quarantine/0000000000000001.000000000000000a.data"), "precious");
  Boot(Node::Death::kPower);
  ASSERT_TRUE(store_->Find(ChunkId(1)));
  EXPECT_EQ(store_->Find(ChunkId(1))->marks().state, ReplicaState::kTombstone);
  EXPECT_EQ(store_->Find(ChunkId(1))->marks().version, Version(3, 1));
  EXPECT_EQ(FilesIn("d/quarantine").size(), 2u);
  // The quarantined files are a replica again when they are moved back.
  auto saved = node_.disk().Contents("d/quarantine/0000000000000001.000000000000000a.meta");
  EXPECT_EQ((*NewestSlot(saved->substr(0, 2 * kSlotSize)))->state, ReplicaState::kOpen);
}

TEST_F(ReplicaStoreTest, AnUnsealedReplicaInQuarantineGivesBackWhatItReserved) {
  const auto free_bytes = [&] { return (*Run(node_.fs().Space("d")))->free_bytes; };
  const uint64_t before = free_bytes();
  ReplicaPtr replica = Create(1, "precious");
  EXPECT_LT(free_bytes() + (1 << 20), before + (64 << 10));  // the whole chunk is reserved
  ASSERT_TRUE(*Run(store_->Delete(replica, {})));
  EXPECT_GT(free_bytes() + (256 << 10), before);
  EXPECT_EQ(node_.disk().Contents("d/quarantine/0000000000000001.000000000000000a.data"), "precious");
}

TEST_F(ReplicaStoreTest, DeletionHappensWhollyOrNotWhereverPowerIsLost) {
  for (uint64_t at = 1; at < 40; ++at) {
    SCOPED_TRACE(at);
    const uint64_t chunk = 100 + at;
    ReplicaPtr replica = Create(chunk, "precious");
    ASSERT_TRUE(*Run(replica->file->Seal(Generation(3, 1), true)));
    node_.disk().faults.lose_power_at = at;
    auto deleted = Run(store_->Delete(replica, {}));
    node_.disk().faults.lose_power_at.reset();
    const bool promised = deleted && *deleted;
    replica.reset();
    Boot(Node::Death::kPower);
    ReplicaPtr after = store_->Find(ChunkId(chunk));
    ASSERT_TRUE(after);
    const ReplicaState state = after->marks().state;
    if (promised) {
      EXPECT_EQ(state, ReplicaState::kTombstone);
    }
    if (state == ReplicaState::kTombstone) {
      EXPECT_EQ(node_.disk().Contents("d/quarantine/" + ToHex(chunk) + "." + ToHex(chunk * 10) + ".data"), "precious");
    } else {
      EXPECT_EQ(state, ReplicaState::kSealed);
      ASSERT_TRUE(*Run(store_->Use(after)));
      EXPECT_EQ((*Run(after->file->Read(0, 8)))->view(), "precious");
    }
    if (promised) return;
  }
  FAIL() << "the deletion never ended";
}

TEST_F(ReplicaStoreTest, AReplicaIsCreatedOverItsTombstone) {
  ReplicaPtr replica = Create(1, "old");
  ASSERT_TRUE(*Run(store_->Delete(replica, {})));
  Create(1, "new bytes", Version(3, 9));
  EXPECT_EQ(replica->marks().state, ReplicaState::kOpen);
  Boot();
  ReplicaPtr again = store_->Find(ChunkId(1));
  EXPECT_EQ(again->marks().version, Version(3, 9));
  EXPECT_EQ(again->marks().length, 9u);
}

TEST_F(ReplicaStoreTest, ATombstoneSurvivesAPowerCutDuringTheNextCreation) {
  for (uint64_t at = 1; at < 30; ++at) {
    SCOPED_TRACE(at);
    const uint64_t chunk = 200 + at;
    ReplicaPtr replica = Create(chunk, "old");
    ASSERT_TRUE(*Run(store_->Delete(replica, {})));
    Slot s = replica->file->slot();
    s.state = ReplicaState::kOpen;
    s.version = Version(3, 9);
    node_.disk().faults.lose_power_at = at;
    auto made = Run(store_->Create(replica, s));
    node_.disk().faults.lose_power_at.reset();
    replica.reset();
    Boot(Node::Death::kPower);
    ReplicaPtr after = store_->Find(ChunkId(chunk));
    ASSERT_TRUE(after);
    EXPECT_GE(after->marks().version, made && *made ? Version(3, 9) : Version(3, 1));
    EXPECT_NE(after->marks().state, ReplicaState::kCorrupt);
    if (made && *made) return;
  }
}

TEST_F(ReplicaStoreTest, QuarantineIsOfferedByAgeAndNeverGoesByItself) {
  ASSERT_TRUE(*Run(store_->Delete(Create(1, "one"), {})));
  world_.RunFor(59min);
  ASSERT_TRUE(*Run(store_->Delete(Create(2, "two"), {})));
  ASSERT_TRUE(*Run(store_->quarantine().FindExpired()));
  EXPECT_TRUE(store_->quarantine().expired().empty());
  world_.RunFor(2min);
  ASSERT_TRUE(*Run(store_->quarantine().FindExpired()));
  ASSERT_EQ(store_->quarantine().expired().size(), 1u);
  EXPECT_EQ(FilesIn("d/quarantine").size(), 4u);
  const std::string name = store_->quarantine().expired().begin()->first;
  EXPECT_EQ(**Run(store_->Purge(name)), 3u);
  EXPECT_TRUE(store_->quarantine().expired().empty());
  EXPECT_EQ(FilesIn("d/quarantine").size(), 2u);
}

TEST_F(ReplicaStoreTest, OnlyIdleCleanReplicasAreClosed) {
  for (uint64_t c = 1; c <= 10; ++c) {
    ReplicaPtr r = Create(c, "content");
    ASSERT_TRUE(*Run(r->file->Seal(Generation(3, 1), true)));
  }
  Boot(Node::Death::kProcess, 3);
  for (uint64_t c = 1; c <= 10; ++c) ASSERT_TRUE(*Run(store_->Use(store_->Find(ChunkId(c)))));
  size_t loaded = 0;
  for (const auto& r : store_->List(ChunkId(), 100)) loaded += r->file->loaded() ? 1 : 0;
  EXPECT_EQ(loaded, 3u);
  // Bytes that are not synced keep their replica open; so does a lock that is held.
  for (uint64_t c = 11; c <= 15; ++c) Create(c, "dirty");
  FifoLock::Ticket held = store_->Find(ChunkId(1))->lock().Enqueue();
  ASSERT_TRUE(*Run(store_->Use(store_->Find(ChunkId(1)))));
  for (uint64_t c = 2; c <= 10; ++c) ASSERT_TRUE(*Run(store_->Use(store_->Find(ChunkId(c)))));
  EXPECT_TRUE(store_->Find(ChunkId(1))->file->loaded());
  for (uint64_t c = 11; c <= 15; ++c) EXPECT_TRUE(store_->Find(ChunkId(c))->file->loaded());
}

TEST_F(ReplicaStoreTest, AnUnreadableMetaFileDoesNotStopTheOthers) {
  Create(1, "good");
  ASSERT_TRUE(*Run(store_->Find(ChunkId(1))->file->Seal(Generation(3, 1), true)));
  node_.Crash(Node::Death::kProcess);
  ASSERT_TRUE(node_.disk().FlipBit("d/replicas/" + ReplicaFile::MetaName(ChunkId(1)), 10, 1));
  ASSERT_TRUE(node_.disk().FlipBit("d/replicas/" + ReplicaFile::MetaName(ChunkId(1)), kSlotSize + 10, 1));
  Boot();
  EXPECT_FALSE(store_->Find(ChunkId(1)));
  EXPECT_EQ(FilesIn("d/aside").size(), 2u);
}

}  // namespace
}  // namespace picket::cs
