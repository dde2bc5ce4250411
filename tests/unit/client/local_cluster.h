// A real master and real chunkservers in this process, on one production loop and loopback sockets.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "chunkserver/chunkserver.h"
#include "common/base/check.h"
#include "common/env/posix/posix_env.h"
#include "master/master.h"

namespace picket {

class LocalCluster {
 public:
  // `dir` exists and is empty.
  LocalCluster(std::string dir, size_t chunkservers) : env_(Quiet()), thread_([this] { env_.Run(); }) {
    const Status started = Run(Start(this, std::move(dir), chunkservers));
    PICKET_CHECK(started.has_value());
  }
  ~LocalCluster() {
    env_.RequestStop();
    thread_.join();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(master_->port()); }

 private:
  static PosixOptions Quiet() {
    PosixOptions options;
    options.log_level = LogLevel::kError;
    return options;
  }
  static Task<Status> Start(LocalCluster* self, std::string dir, size_t chunkservers) {
    for (const char* part : {"/master", "/chunkservers"}) PICKET_CO_TRY(co_await self->env_.fs().MakeDir(dir + part));
    auto secret = co_await InitMaster(&self->env_, dir + "/master");
    if (!secret) co_return Fail(secret.error());
    MasterOptions options;
    options.dir = dir + "/master";
    options.listen.port = 0;
    options.default_chunk_size = 1 << 20;
    self->master_ = std::make_unique<Master>(self->env_, options);
    PICKET_CO_TRY(co_await self->master_->Start());
    for (size_t i = 0; i < chunkservers; ++i) {
      ChunkserverOptions server;
      server.dir = dir + "/chunkservers/" + std::to_string(i);
      server.master = Endpoint("127.0.0.1", self->master_->port());
      server.reserve_bytes = 0;
      PICKET_CO_TRY(co_await self->env_.fs().MakeDir(server.dir));
      auto id = co_await InitChunkserver(&self->env_, server.dir, *secret);
      if (!id) co_return Fail(id.error());
      PICKET_CO_TRY(
          co_await self->chunkservers_.emplace_back(std::make_unique<Chunkserver>(self->env_, server))->Start());
    }
    co_return Status();
  }
  Status Run(Task<Status> task) {
    std::promise<Status> done;
    auto result = done.get_future();
    env_.PostFromAnyThread([&, task = std::move(task)]() mutable { env_.Spawn(Keep(&done, std::move(task))); });
    return result.get();
  }
  static Task<> Keep(std::promise<Status>* done, Task<Status> task) {
    Status status = co_await std::move(task);
    done->set_value(std::move(status));
  }

  PosixEnv env_;
  std::unique_ptr<Master> master_;
  std::vector<std::unique_ptr<Chunkserver>> chunkservers_;
  std::thread thread_;
};

}  // namespace picket
