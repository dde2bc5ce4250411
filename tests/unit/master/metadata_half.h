// The metadata half of a master as one process of a simulated node, with its calls served, and what
// tests of it share.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/rpc/client.h"
#include "common/rpc/server.h"
#include "master/answer_table.h"
#include "master/chunk_table.h"
#include "master/concat.h"
#include "master/file_service.h"
#include "master/keys.h"
#include "master/meta_store.h"
#include "master/namespace.h"
#include "master/open_files.h"
#include "master/open_service.h"
#include "master/purge_queue.h"
#include "master/reclaimer.h"
#include "master/session_table.h"
#include "master/trash.h"
#include "master/truncate_service.h"
#include "tests/sim/node.h"
#include "tests/sim/world.h"

namespace picket::test {

inline constexpr uint16_t kMasterPort = 7400;

struct MetadataHalf;

// Does what Recoverer does to the metadata, with chunks that hold as many bytes as their records say.
class FakeRecoverer {
 public:
  explicit FakeRecoverer(MetadataHalf& half);
  Task<Result<Entry>> Recover(Recoverer::Ask ask);

  bool hold = false;  // jobs stop between the first batch and the last
  size_t begun = 0;

 private:
  struct Job {
    Recoverer::Ask ask;
    std::optional<Result<Entry>> result;
  };
  static Task<> Run(FakeRecoverer* self, std::shared_ptr<Job> job);
  Task<Result<Entry>> Attend(std::shared_ptr<Job> job);

  MetadataHalf& half_;
  std::map<InodeId, std::shared_ptr<Job>> jobs_;
};

struct MetadataHalf {
  explicit MetadataHalf(Env& e)
      : env(e),
        store(e, MetaStore::Options{"meta", 1 << 20}),
        answers(e, store),
        names(e, store),
        sessions(e, store, SessionTable::Options{}),
        purge(e, names, sessions),
        chunks(store),
        files(e, names, sessions, purge, chunks),
        trash(e, store, serving, names, purge, Trash::Options{}),
        reclaimer(e, store, serving, names, sessions, purge, chunks),
        service(e, store, serving, answers, names, sessions, files, purge, trash, FileService::Options{}),
        recoverer(*this),
        open(e, store, Changes(store, answers, serving), names, sessions, files, chunks, OpenOptions()),
        truncate(e, store, Changes(store, answers, serving), names, sessions, files,
                 [this](Recoverer::Ask ask) { return recoverer.Recover(std::move(ask)); }),
        concat(e, Changes(store, answers, serving), names, sessions, files, purge, chunks),
        server(e) {}

  OpenService::Options OpenOptions() {
    OpenService::Options out;
    out.recover = [this](Recoverer::Ask ask) { return recoverer.Recover(std::move(ask)); };
    out.describe = [](const ChunkRow& chunk) {
      proto::ChunkLocation location;
      location.set_chunk(chunk.id.value);
      return location;
    };
    out.sequencer = [](const std::string& path, const SessionTable::Session& session, ClientId holder) {
      proto::Sequencer s;
      s.set_path(path);
      s.set_generation(session.generation.value);
      s.set_holder(holder.value);
      s.set_mode(session.mode);
      return s;
    };
    return out;
  }

  Task<Status> Open() {
    PICKET_CO_TRY(co_await store.Open());
    PICKET_CO_TRY(co_await names.Open());
    PICKET_CO_TRY(sessions.Load());
    service.Register(&server);
    open.Register(&server);
    truncate.Register(&server);
    concat.Register(&server);
    PICKET_CO_TRY(server.Start(Endpoint("node-0", kMasterPort)));
    if (background) env.Spawn(reclaimer.Run());
    if (background) env.Spawn(trash.ExpireLoop());
    opened = true;
    co_return Status();
  }

  Env& env;
  bool background = true;
  bool opened = false;
  Serving serving;
  MetaStore store;
  AnswerTable answers;
  Namespace names;
  SessionTable sessions;
  PurgeQueue purge;
  ChunkTable chunks;
  OpenFiles files;
  Trash trash;
  Reclaimer reclaimer;
  FileService service;
  FakeRecoverer recoverer;
  OpenService open;
  TruncateService truncate;
  Concat concat;
  RpcServer server;
};

// A master node and a client node.
class MetadataTest : public ::testing::Test {
 protected:
  explicit MetadataTest(sim::Config config = {}) : world(config), node(world.AddNode("master")), client(world.AddNode("client")) {
    client.Start();
    channel = std::make_unique<Channel>(client, Endpoint("node-0", kMasterPort));
    Boot();
  }
  void TearDown() override;  // metadata_half.cc: the tables must fit together
  ~MetadataTest() override {
    channel.reset();
    if (node.alive()) node.Crash(sim::Node::Death::kProcess);
    client.Crash(sim::Node::Death::kProcess);
  }

  void Boot() {
    node.Start([](Env& env) { return std::make_unique<sim::Running<MetadataHalf>>(env); });
    half().background = background;
    auto opened = sim::RunTask(world, node, half().Open());
    ASSERT_TRUE(opened && *opened) << (opened ? opened->error().ToString() : "the node died");
  }
  void Restart(sim::Node::Death death = sim::Node::Death::kPower) {
    node.Crash(death);
    Boot();
    channel = std::make_unique<Channel>(client, Endpoint("node-0", kMasterPort));
  }
  MetadataHalf& half() { return *node.As<MetadataHalf>(); }

  template <class Response, class Request>
  Result<Response> Call(proto::Method method, const Request& request) {
    auto reply = sim::RunTask(world, client, channel->Call<Response>(method, request, 30s));
    if (!reply) return Fail(Code::kDeadlineExceeded, "the call did not end");
    return std::move(*reply);
  }
  void Identify(proto::MutationId* id) {
    id->set_client(kClient);
    id->set_sequence(++sequence);
    id->set_first_unacked(keep_answers ? 1 : sequence);
  }

  // ---- calls in short form ------------------------------------------------------------------------
  Result<proto::MkdirResponse> Mkdir(std::string path, bool parents = true) {
    proto::MkdirRequest r;
    Identify(r.mutable_mutation());
    r.set_path(std::move(path));
    r.set_parents(parents);
    r.set_mode(0755);
    r.set_owner("ann");
    r.set_group("staff");
    return Call<proto::MkdirResponse>(proto::MKDIR, r);
  }
  proto::CreateRequest CreateRequestFor(std::string path, bool overwrite = false) {
    proto::CreateRequest r;
    Identify(r.mutable_mutation());
    r.set_path(std::move(path));
    r.set_overwrite(overwrite);
    r.set_mode(0640);
    r.set_owner("ann");
    r.set_group("staff");
    r.set_holder(kClient);
    return r;
  }
  Result<proto::CreateResponse> Create(std::string path, bool overwrite = false) {
    return Call<proto::CreateResponse>(proto::CREATE, CreateRequestFor(std::move(path), overwrite));
  }
  Result<proto::CloseResponse> Close(const proto::CreateResponse& file, uint64_t holder = kClient) {
    proto::CloseRequest r;
    Identify(r.mutable_mutation());
    r.set_inode(file.status().inode());
    r.set_generation(file.generation());
    r.set_holder(holder);
    return Call<proto::CloseResponse>(proto::CLOSE, r);
  }
  Result<proto::AbandonResponse> Abandon(const proto::CreateResponse& file, uint64_t holder = kClient) {
    proto::AbandonRequest r;
    Identify(r.mutable_mutation());
    r.set_inode(file.status().inode());
    r.set_generation(file.generation());
    r.set_holder(holder);
    return Call<proto::AbandonResponse>(proto::ABANDON, r);
  }
  // Creates and closes an empty file; its inode.
  uint64_t Put(std::string path, bool overwrite = false) {
    auto created = Create(std::move(path), overwrite);
    EXPECT_TRUE(created) << created.error().ToString();
    if (!created) return 0;
    auto closed = Close(*created);
    EXPECT_TRUE(closed) << closed.error().ToString();
    return created->status().inode();
  }
  Result<proto::FileStatus> Stat(std::string path) {
    proto::StatRequest r;
    r.set_path(std::move(path));
    auto response = Call<proto::StatResponse>(proto::STAT, r);
    if (!response) return Fail(response.error());
    return response->status();
  }
  bool Exists(std::string path) {
    auto status = Stat(std::move(path));
    EXPECT_TRUE(status || status.error().code == Code::kNotFound) << status.error().ToString();
    return status.has_value();
  }
  Result<proto::ListResponse> List(std::string path, std::string start_after = "", uint32_t limit = 0) {
    proto::ListRequest r;
    r.set_path(std::move(path));
    r.set_start_after(std::move(start_after));
    r.set_limit(limit);
    return Call<proto::ListResponse>(proto::LIST, r);
  }
  std::vector<std::string> Names(std::string path) {
    std::vector<std::string> names;
    auto listed = List(std::move(path));
    EXPECT_TRUE(listed) << listed.error().ToString();
    if (listed) {
      for (const auto& entry : listed->entries()) names.push_back(entry.name());
    }
    return names;
  }
  Result<proto::RenameResponse> Rename(std::string from, std::string to, bool overwrite = false) {
    proto::RenameRequest r;
    Identify(r.mutable_mutation());
    r.set_from(std::move(from));
    r.set_to(std::move(to));
    r.set_overwrite(overwrite);
    return Call<proto::RenameResponse>(proto::RENAME, r);
  }
  Result<proto::DeleteResponse> Delete(std::string path, bool recursive = false, bool skip_trash = false) {
    proto::DeleteRequest r;
    Identify(r.mutable_mutation());
    r.set_path(std::move(path));
    r.set_recursive(recursive);
    r.set_skip_trash(skip_trash);
    r.set_user("ann");
    return Call<proto::DeleteResponse>(proto::DELETE, r);
  }
  // Puts a chunk into a file behind the protocol's back.
  ChunkId AddChunk(InodeId inode, bool sealed, uint64_t length = 100) {
    MetadataHalf& m = half();
    auto entry = m.names.Get(inode);
    EXPECT_TRUE(entry);
    record::Chunk chunk;
    chunk.set_inode(inode.value);
    chunk.set_index(entry->inode.chunk_count());
    chunk.set_chunk_size(entry->inode.chunk_size());
    chunk.set_replication(entry->inode.replication());
    const Version version = m.chunks.NextVersion(chunk);
    chunk.set_minted(version.value);
    chunk.set_current(version.value);
    Batch batch;
    const ChunkId id = m.chunks.NewId();
    entry->inode.set_chunk_count(entry->inode.chunk_count() + 1);
    if (sealed) {
      NoteSealedLength(&entry->inode, chunk, length);
      chunk.set_sealed(true);
      chunk.set_length(length);
    } else if (m.sessions.IsOpen(inode)) {
      m.sessions.SetOpenChunk(&batch, inode, id);
    }
    m.chunks.Put(&batch, id, chunk);
    m.names.PutInode(&batch, &*entry);
    auto committed = sim::RunTask(world, node, m.store.Commit(std::move(batch)));
    EXPECT_TRUE(committed && *committed);
    return id;
  }
  proto::OpenRequest OpenRequestFor(std::string path, proto::SessionMode mode = proto::EXCLUSIVE,
                                    uint64_t holder = kClient, std::string writer_id = "") {
    proto::OpenRequest r;
    Identify(r.mutable_mutation());
    r.set_path(std::move(path));
    r.set_mode(mode);
    r.set_holder(holder);
    r.set_writer_id(std::move(writer_id));
    return r;
  }
  Result<proto::OpenResponse> Open(const proto::OpenRequest& request) {
    return Call<proto::OpenResponse>(proto::OPEN_FILE, request);
  }
  Result<proto::ReleaseResponse> Release(const proto::OpenResponse& file, uint64_t holder = kClient) {
    proto::ReleaseRequest r;
    Identify(r.mutable_mutation());
    r.set_inode(file.status().inode());
    r.set_generation(file.generation());
    r.set_holder(holder);
    return Call<proto::ReleaseResponse>(proto::RELEASE, r);
  }
  // True when `holder` still has that session.
  bool Renew(uint64_t inode, uint64_t generation, uint64_t holder = kClient) {
    proto::RenewRequest r;
    r.set_holder(holder);
    auto* s = r.add_sessions();
    s->set_inode(inode);
    s->set_generation(generation);
    auto renewed = Call<proto::RenewResponse>(proto::RENEW, r);
    EXPECT_TRUE(renewed);
    return renewed && renewed->lost_inodes().empty();
  }
  // What closing an opened file takes.
  static proto::CreateResponse AsCreated(const proto::OpenResponse& opened) {
    proto::CreateResponse created;
    *created.mutable_status() = opened.status();
    created.set_generation(opened.generation());
    return created;
  }
  // Sends without waiting; the answer appears in the returned slot.
  template <class Response, class Request>
  std::shared_ptr<std::optional<Result<Response>>> Begin(proto::Method method, const Request& request,
                                                         Nanos timeout = 30s) {
    auto slot = std::make_shared<std::optional<Result<Response>>>();
    client.Spawn(KeepAnswer<Response>(slot, channel->Call<Response>(method, request, timeout)));
    return slot;
  }
  template <class Response>
  static Task<> KeepAnswer(std::shared_ptr<std::optional<Result<Response>>> slot, Task<Result<Response>> call) {
    slot->emplace(co_await std::move(call));
  }
  bool PurgeQueueEmpty() {
    auto rows = half().store.Scan(keys::kPurge, "", 1);
    return rows && rows->empty();
  }
  void WaitForReclaim() {
    EXPECT_TRUE(world.RunUntil([this] { return PurgeQueueEmpty(); }, 60s));
  }

  static constexpr uint64_t kClient = 77;
  bool background = true;
  uint64_t sequence = 0;
  bool keep_answers = false;  // the client has not got them, it says
  sim::World world;
  sim::Node& node;
  sim::Node& client;
  std::unique_ptr<Channel> channel;
};

inline Code CodeOf(const auto& result) { return result ? Code::kOk : result.error().code; }

}  // namespace picket::test
