#include "tests/sim/scene.h"

#include <algorithm>

#include "tests/sim/net.h"

namespace picket::sim {

Scene::Scene(size_t chunkservers, uint64_t seed)
    : world_({}, seed), cluster_(world_, {.chunkservers = chunkservers, .clients = 0}) {
  cluster_.Start();
  FileSystemOptions options;
  options.master = cluster_.master_endpoint();
  fs_ = std::make_unique<FileSystem>(me(), options);
  world_.SetTap([this](Node& from, Node& to, const Frame& frame) { return OnFrame(from, to, frame); });
}

Scene::~Scene() {
  EXPECT_FALSE(world_.failed()) << world_.violation()->invariant << ": " << world_.violation()->detail;
  world_.SetTap({});
  writer_.reset();
  fs_.reset();
  world_.ShutDown();
}

size_t Scene::IndexOf(ServerId id) const {
  for (size_t i = 0; i < cluster_.servers().size(); ++i) {
    if (cluster_.server_id(i) == id) return i;
  }
  return cluster_.servers().size();
}

size_t Scene::IndexOf(const std::string& name) const {
  for (size_t i = 0; i < cluster_.servers().size(); ++i) {
    if (cluster_.servers()[i]->name() == name) return i;
  }
  return cluster_.servers().size();
}

bool Scene::OnFrame(Node& from, Node& to, const Frame& frame) {
  proto::RpcHeader header;
  if (!header.ParseFromString(frame.header)) return true;
  proto::Method method = header.method();
  if (header.response()) {
    auto asked = asked_.find({to.index(), from.index(), header.id()});
    if (asked == asked_.end()) return true;
    method = asked->second;
    asked_.erase(asked);
  } else {
    asked_[{from.index(), to.index(), header.id()}] = method;
    if (capturing_.contains(method)) {
      const Buffer payload = frame.payload.buffer();
      captured_.push_back({method, header.body(), std::string(payload.view()), to.name()});
    }
  }
  for (Loss& loss : losses_) {
    const std::string& node = loss.answer ? from.name() : to.name();
    if (loss.left == 0 || loss.method != method || loss.answer != header.response()) continue;
    if (!loss.node.empty() && loss.node != node) continue;
    --loss.left;
    return false;
  }
  return true;
}

void Scene::LoseRequests(proto::Method method, std::string to, size_t count) {
  losses_.push_back({method, false, std::move(to), count});
}
void Scene::LoseAnswers(proto::Method method, std::string from, size_t count) {
  losses_.push_back({method, true, std::move(from), count});
}
void Scene::NothingIsLostAnyMore() { losses_.clear(); }

std::vector<Captured> Scene::TakeCaptured(proto::Method method) {
  std::vector<Captured> out;
  for (const Captured& c : captured_) {
    if (c.method == method) out.push_back(c);
  }
  std::erase_if(captured_, [&](const Captured& c) { return c.method == method; });
  return out;
}

Result<RpcReply> Scene::SendAgain(const Captured& request) {
  Node* to = nullptr;
  for (size_t i = 0; i < world_.node_count(); ++i) {
    if (world_.node(i).name() == request.to) to = &world_.node(i);
  }
  Channel channel(me(), Endpoint(to->host(), to == &master() ? Cluster::kMasterPort : Cluster::kChunkserverPort));
  auto reply = Do(channel.Call(request.method, request.body, Payload(Buffer::Copy(request.payload)), 30s));
  channel.Disconnect();
  return reply;
}

void Scene::BreakConnections(Node& node) {
  while (node.sim_net().ResetOne(0)) world_.RunFor(1ms);
}

std::vector<size_t> Scene::ChainOfCaptured() {
  std::vector<size_t> chain;
  for (const Captured& packet : TakeCaptured(proto::WRITE_PACKET)) {
    const size_t i = IndexOf(packet.to);
    if (std::ranges::find(chain, i) == chain.end()) chain.push_back(i);
  }
  return chain;
}

void Scene::Away(size_t i, Nanos lasts) {
  cluster_.Apply({.kind = FaultKind::kKill, .node = server(i).name(), .lasts = lasts});
}

void Scene::GrantWithoutTheAnswerOf(size_t left_out) {
  LoseAnswers(proto::ADVANCE_VERSION, server(left_out).name(), 1000);
  BreakConnections(me());
}

void Scene::GrantWithout(size_t left_out) {
  LoseRequests(proto::ADVANCE_VERSION, server(left_out).name(), 1000);
  BreakConnections(me());
}

void Scene::Create(CreateFileOptions options, std::string path) {
  options.chunk_size = 1 << 20;
  auto writer = Do(fs_->Create(std::move(path), options));
  ASSERT_TRUE(writer) << writer.error().ToString();
  writer_ = std::move(*writer);
}

void Scene::Write(uint64_t offset, size_t size) {
  auto written = Do(writer_->Write(PatternBuffer(1, offset, size)));
  ASSERT_TRUE(written) << written.error().ToString();
}

void Scene::WriteAndFlush(uint64_t offset, size_t size) {
  Write(offset, size);
  auto flushed = Do(writer_->Flush());
  ASSERT_TRUE(flushed) << flushed.error().ToString();
}

void Scene::BeginFlush(uint64_t offset, size_t size) {
  Write(offset, size);
  flushed_ = std::make_shared<std::optional<Status>>();
  struct Flush {
    static Task<> Run(FileWriter* writer, std::shared_ptr<std::optional<Status>> into) {
      auto flushed = co_await writer->Flush();
      *into = std::move(flushed);
    }
  };
  me().Spawn(Flush::Run(writer_.get(), flushed_));
}

void Scene::AwaitFlush() {
  const Status flushed = FlushResult();
  ASSERT_TRUE(flushed) << flushed.error().ToString();
}

Status Scene::FlushResult() {
  EXPECT_TRUE(world_.RunUntil([&] { return flushed_->has_value(); }, 10min));
  return flushed_->value_or(Status());
}

Status Scene::Close() {
  auto closed = Do(writer_->Close());
  if (!closed) return Fail(closed.error());
  return {};
}

void Scene::Append(AppendFileOptions options, std::string path) {
  auto writer = Do(fs_->OpenForAppend(std::move(path), std::move(options)));
  ASSERT_TRUE(writer) << writer.error().ToString();
  writer_ = std::move(*writer);
}

void Scene::Recover(std::string path) {
  auto recovered = Do(fs_->RecoverLease(std::move(path), true));
  ASSERT_TRUE(recovered) << recovered.error().ToString();
  EXPECT_TRUE(recovered->closed());
}

void Scene::ExpectFile(size_t size, std::string path) {
  auto reader = Do(fs_->Open(std::move(path)));
  ASSERT_TRUE(reader) << reader.error().ToString();
  auto bytes = Do((*reader)->ReadAt(0, size + 1));
  ASSERT_TRUE(bytes) << bytes.error().ToString();
  EXPECT_EQ(bytes->size(), size);
  EXPECT_FALSE(PatternDiffers(1, 0, bytes->span()));
}

size_t Scene::ReadableBytes(std::string path) {
  auto reader = Do(fs_->Open(std::move(path)));
  if (!reader) {
    ADD_FAILURE() << reader.error().ToString();
    return 0;
  }
  auto bytes = Do((*reader)->ReadAt(0, 1 << 20));
  if (!bytes) {
    ADD_FAILURE() << bytes.error().ToString();
    return 0;
  }
  EXPECT_FALSE(PatternDiffers(1, 0, bytes->span()));
  return bytes->size();
}

proto::ChunkLocation Scene::Chunk(uint64_t index, std::string path) {
  auto chunks = Do(fs_->Chunks(std::move(path)));
  if (!chunks || chunks->size() <= index) {
    ADD_FAILURE() << "no chunk " << index;
    return {};
  }
  return (*chunks)[index];
}

Scene::Set Scene::SetOf(const proto::ChunkLocation& chunk) const {
  Set set;
  for (const auto& replica : chunk.replicas()) {
    if (!replica.counted()) continue;
    const size_t i = IndexOf(ServerId(replica.hop().server()));
    if (replica.hop().server() == chunk.primary()) {
      set.primary = i;
    } else {
      set.others.push_back(i);
    }
  }
  std::ranges::sort(set.others);
  return set;
}

bool Scene::Counted(const proto::ChunkLocation& chunk, ServerId server) {
  for (const auto& replica : chunk.replicas()) {
    if (ServerId(replica.hop().server()) == server) return replica.counted();
  }
  return false;
}

proto::DescribeReplicaResponse Scene::Replica(size_t i, ChunkId chunk) {
  Channel channel(me(), Endpoint(server(i).host(), Cluster::kChunkserverPort));
  proto::DescribeReplicaRequest request;
  request.set_chunk(chunk.value);
  auto response = Do(channel.Call<proto::DescribeReplicaResponse>(proto::DESCRIBE_REPLICA, request, 10s));
  channel.Disconnect();
  if (!response) {
    ADD_FAILURE() << response.error().ToString();
    return {};
  }
  return *response;
}

void Scene::ExpectEqualReplicas(size_t size, std::string path) {
  const proto::ChunkLocation chunk = Chunk(0, std::move(path));
  const ChunkId id(chunk.chunk());
  for (size_t i = 0; i < cluster_.servers().size(); ++i) {
    EXPECT_TRUE(Counted(chunk, i)) << i;
    EXPECT_EQ(Replica(i, id).replica().digest(), Replica(0, id).replica().digest()) << i;
    EXPECT_EQ(Bytes(i, id).substr(0, size), Bytes(0, id).substr(0, size)) << i;
  }
}

std::string Scene::Bytes(size_t i, ChunkId chunk) const {
  return cluster_.ReplicaBytes(cluster_.server_id(i), chunk).value_or("");
}

}  // namespace picket::sim
