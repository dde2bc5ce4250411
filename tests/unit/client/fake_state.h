// What the servers of a scripted cluster know, and how they read and answer calls.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "proto/client_master.pb.h"
#include "tests/unit/client/fake_server.h"

namespace picket {

inline constexpr uint16_t kFakeMasterPort = 7400;
inline constexpr uint16_t kFakeServerPort = 7500;
inline constexpr uint64_t kMiB = 1 << 20;

struct FakeReplica {
  Version version;
  uint64_t serial = 0;
  std::string bytes;
  std::string synced;         // what survives a power cut
  bool sealed = false;
  std::optional<size_t> rot;  // this byte is sent wrong
  uint64_t readable = UINT64_MAX;  // known-acked, when less than all
};

struct FakeChunkserver {
  ServerId id;
  Endpoint endpoint;
  FakeServer::Script script;
  std::map<uint64_t, FakeReplica> replicas;
  bool forgets_a_member = false;  // its next seal leaves the last member out
};

struct FakeFile {
  proto::FileStatus status;
  uint64_t holder = 0;
  bool removed = false;
  std::string replaces;              // the name it takes when it is closed
  proto::Conditions conditions;      // then judged again
  std::vector<proto::ChunkLocation> chunks;
};

template <class Request>
std::vector<Request> Asked(const FakeServer::Script& script, proto::Method method) {
  std::vector<Request> requests;
  for (const auto& [m, body] : script.calls) {
    if (m != method) continue;
    Request request;
    EXPECT_TRUE(request.ParseFromString(body));
    requests.push_back(std::move(request));
  }
  return requests;
}

template <class M>
M Parse(const RpcRequest& r) {
  M m;
  EXPECT_TRUE(m.ParseFromString(r.body));
  return m;
}
inline Result<RpcReply> Say(const google::protobuf::MessageLite& m) {
  return RpcReply(m.SerializeAsString(), Payload());
}

}  // namespace picket
