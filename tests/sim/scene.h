// A scene: a small cluster without chance, one or two writers, and one message that is lost, held or sent
// again at the wrong moment. For the traces that the protocol was once broken by.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "client/core/file_reader.h"
#include "client/core/file_system.h"
#include "client/core/file_writer.h"
#include "common/rpc/client.h"
#include "proto/chunkserver_master.pb.h"
#include "tests/sim/cluster.h"
#include "tests/sim/pattern.h"

namespace picket::sim {

// A request as it was on the wire, to be sent again when it is long out of date.
struct Captured {
  proto::Method method = proto::METHOD_UNKNOWN;
  std::string body;
  std::string payload;
  std::string to;  // name of the node
};

class Scene : public testing::Test {
 protected:
  explicit Scene(size_t chunkservers = 3, uint64_t seed = 11);
  ~Scene() override;

  Node& me() { return cluster_.observer(); }
  Node& master() { return cluster_.master(); }
  Node& server(size_t i) { return *cluster_.servers()[i]; }
  size_t IndexOf(ServerId id) const;
  size_t IndexOf(const std::string& name) const;

  // ---- what happens to messages
  // The next `count` requests (or answers) of that method between these nodes are lost. "" = any node.
  void LoseRequests(proto::Method method, std::string to, size_t count = 1);
  void LoseAnswers(proto::Method method, std::string from, size_t count = 1);
  // From now on requests of that method are kept as copies.
  void Capture(proto::Method method) { capturing_.insert(method); }
  std::vector<Captured> TakeCaptured(proto::Method method);
  // Sends a copy, as a late duplicate. What the server answers.
  Result<RpcReply> SendAgain(const Captured& request);
  void NothingIsLostAnyMore();
  // The order in which packets, captured, first went through these servers.
  std::vector<size_t> ChainOfCaptured();
  // Dead, and up again afterwards.
  void Away(size_t server, Nanos lasts);
  // The writer's connections break: it asks the master for a grant.
  void BreakConnections(Node& node);
  // A set without `left_out`, whose answer to the grant is lost although it raised its mark.
  void GrantWithoutTheAnswerOf(size_t left_out);
  // The same, and it never hears of the grant either.
  void GrantWithout(size_t left_out);

  // ---- tasks, files
  template <class T>
  T Do(Task<T> task, Nanos limit = 10min) {
    auto r = RunTask(world_, me(), std::move(task), limit);
    EXPECT_TRUE(r.has_value()) << "the task did not end";
    return std::move(*r);
  }
  void Create(CreateFileOptions options = {}, std::string path = "/f");
  void Write(uint64_t offset, size_t size);
  // Written, and acknowledged by every member.
  void WriteAndFlush(uint64_t offset, size_t size);
  // The same, in two halves: between them something happens to what is on the wire.
  void BeginFlush(uint64_t offset, size_t size);
  void AwaitFlush();
  Status FlushResult();
  Status Close();
  // The file is written on at its end, by a session of its own.
  void Append(AppendFileOptions options = {}, std::string path = "/f");
  // Whoever writes it is fenced, and the file closed.
  void Recover(std::string path = "/f");
  // The whole file is the pattern, and that long.
  void ExpectFile(size_t size, std::string path = "/f");
  // Of a file that may still be open: how many bytes a reader sees; all of them the pattern.
  size_t ReadableBytes(std::string path = "/f");
  proto::ChunkLocation Chunk(uint64_t index = 0, std::string path = "/f");
  // The chunk's primary, and its other members in ascending order.
  struct Set {
    size_t primary = 0;
    std::vector<size_t> others;
  };
  Set SetOf(const proto::ChunkLocation& chunk) const;
  static bool Counted(const proto::ChunkLocation& chunk, ServerId server);
  bool Counted(const proto::ChunkLocation& chunk, size_t server) const {
    return Counted(chunk, cluster_.server_id(server));
  }
  // What a replica's server says of it.
  proto::DescribeReplicaResponse Replica(size_t server, ChunkId chunk);
  std::string Bytes(size_t server, ChunkId chunk) const;
  // Of the first chunk: every replica counts, and has the same `size` bytes.
  void ExpectEqualReplicas(size_t size, std::string path = "/f");

  World world_;
  Cluster cluster_;
  std::unique_ptr<FileSystem> fs_;
  std::unique_ptr<FileWriter> writer_;

 private:
  struct Loss {
    proto::Method method;
    bool answer;
    std::string node;
    size_t left;
  };
  bool OnFrame(Node& from, Node& to, const Frame& frame);

  std::shared_ptr<std::optional<Status>> flushed_;
  std::vector<Loss> losses_;
  std::set<proto::Method> capturing_;
  std::vector<Captured> captured_;
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, proto::Method> asked_;  // client, server, id
};

}  // namespace picket::sim
