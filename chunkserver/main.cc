// picket-chunkserver: serves the replicas of one directory.
#include "chunkserver/chunkserver.h"
#include "common/daemon/daemon.h"

namespace picket {
namespace {

class ChunkserverDaemon final : public Daemon {
 public:
  ChunkserverDaemon(Env& env, const ChunkserverOptions& options) : server_(env, options) {}
  Task<Status> Start() override { return server_.Start(); }
  Task<> Stop() override {
    server_.Stop();
    co_return;
  }

 private:
  Chunkserver server_;
};

struct InitSettings {
  std::string dir;
  std::string secret;
};

Task<Result<std::string>> Init(Env* env, InitSettings settings) {
  auto secret = co_await LoadClusterSecret(&env->fs(), settings.secret);
  if (!secret) co_return Fail(std::move(secret).error());
  auto server = co_await InitChunkserver(env, settings.dir, *secret);
  if (!server) co_return Fail(std::move(server).error());
  co_return settings.dir + " is now chunkserver " + ToString(*server) + " of cluster " + secret->cluster;
}

void Bind(Config* config, ChunkserverOptions* o) {
  config->Text("dir", &o->dir, "The data directory, made by `picket-chunkserver init`.");
  config->Required();
  config->Address("master", &o->master, "Where the master is.", 7400);
  config->Address("listen", &o->listen,
                  "Where clients, the master and other chunkservers connect.\n"
                  "Port 0 takes any free one; the master tells the clients.");
  config->Address("advertise", &o->advertise,
                  "The address others are told, when it is not the one listened on.\n"
                  "Empty host or port 0: as listened on.");
  config->Text("rack", &o->rack, "Replicas of a chunk are spread over racks.");
  config->Size("reserve", &o->reserve_bytes, 0, uint64_t{1} << 50, "Free space of the disk that is not used.");
  config->Duration("quarantine", &o->quarantined_for, 0s, 24h * 365,
                   "How long the bytes of deleted replicas are kept.");
}

}  // namespace
}  // namespace picket

int main(int argc, char** argv) {
  using namespace picket;
  ChunkserverOptions options;
  Config config;
  Bind(&config, &options);
  InitSettings init;
  Config init_config;
  init_config.Text("dir", &init.dir, "The directory to make; its parent must exist.");
  init_config.Required();
  init_config.Text("secret", &init.secret, "The cluster's secret, copied from the master's directory.");
  init_config.Required();

  DaemonSpec spec;
  spec.name = "picket-chunkserver";
  spec.summary = "Picket's chunkserver: stores and serves chunk replicas.";
  spec.config = &config;
  spec.listen = &options.listen;
  spec.make = [&options](Env& env) { return std::make_unique<ChunkserverDaemon>(env, options); };
  spec.init_config = &init_config;
  spec.init = [&init](Env& env) { return Init(&env, init); };
  return RunDaemon(argc, argv, spec);
}
