// A writer that sends what it likes: it keeps every permission that it was ever given, and may show an old one.
// What the library does for its users (renewal, retries, fail-over) is left out, so that each refusal is seen.
#pragma once

#include <string>
#include <string_view>

#include "client/cli/demo/stage.h"
#include "proto/client_master.pb.h"
#include "proto/data.pb.h"

namespace picket::cli::demo {

class RawWriter {
 public:
  RawWriter(Stage& stage, std::string path);

  // Always the same request, under the same mutation id.
  Result<proto::CreateResponse> Create();
  Status AddChunk();
  // Names the primary as failed, and waits until the master has a set without it.
  Status GrantWithoutPrimary(uint64_t acked);
  // To one server, once. `serial` counts within the token's version.
  struct Packet {
    uint64_t serial = 0;
    uint64_t offset = 0;
    std::string_view bytes;
  };
  Status Send(const proto::Hop& to, const proto::WriteToken& token, const Packet& packet,
              std::chrono::milliseconds timeout = kCallTimeout);
  Status SealAndClose(uint64_t length);

  const std::string& path() const { return path_; }
  // The newest.
  const proto::WriteGrant& grant() const { return grant_; }

 private:
  proto::MutationId Mutation(uint64_t sequence) const;
  template <class Request>
  void Sign(Request* request) const {
    request->set_inode(inode_);
    request->set_generation(generation_);
    request->set_holder(id_);
  }

  Stage& stage_;
  const std::string path_;
  const uint64_t id_;
  uint64_t next_sequence_ = 2;  // 1 is the creation's
  uint64_t inode_ = 0;
  uint64_t generation_ = 0;
  proto::WriteGrant grant_;
};

Endpoint EndpointOf(const proto::Hop& hop);

}  // namespace picket::cli::demo
