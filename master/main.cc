// picket-master: flags and configuration file in, a Master out.
#include <memory>

#include "common/daemon/daemon.h"
#include "common/obs/config.h"
#include "master/master.h"

namespace picket {
namespace {

// What the file and the flags set, where MasterOptions has another type.
struct Settings {
  MasterOptions options;
  int64_t default_replication = 3;
  int64_t min_write_replicas = 2;

  MasterOptions ToOptions() const {
    MasterOptions out = options;
    out.default_replication = static_cast<uint32_t>(default_replication);
    out.min_write_replicas = static_cast<uint32_t>(min_write_replicas);
    return out;
  }
};

void Bind(Config* config, Settings* s) {
  MasterOptions& o = s->options;
  config->Text("dir", &o.dir, "Directory of the metadata, made by `picket-master init`. It needs a disk whose "
                              "fsync is honest; nothing else may be in it.");
  config->Required();
  config->Address("listen", &o.listen, "Where clients and chunkservers connect.", kMasterPort);
  config->Address("advertise", &o.advertise,
                  "The address that reports name, when it is not the one listened on.\n"
                  "Empty host or port 0: as listened on.");
  config->Size("cache", &o.cache_bytes, 1 << 20, uint64_t{1} << 40,
               "Memory for hot metadata. The master's memory does not grow with the number of files beyond it, "
               "except for the locations of chunks.");
  config->Integer("default_replication", &s->default_replication, 1, 16,
                  "Replicas of each chunk of files that do not say otherwise.");
  config->Integer("min_write_replicas", &s->min_write_replicas, 1, 16,
                  "A write goes on with that many replicas when servers fail, and fails with fewer (files with a "
                  "replication of 1 need 1).");
  config->Size("default_chunk_size", &o.default_chunk_size, 1 << 20, 1 << 30,
               "Chunk size of files that do not say otherwise: a power of two.");
  config->Duration("lease", &o.lease, 1s, 1h,
                   "Primary lease of a chunk. When a primary vanishes, its chunk cannot be written for so long.");
  config->Duration("heartbeat", &o.heartbeat, 100ms, 1min, "How often chunkservers report.");
  config->Duration("suspect_after", &o.suspect_after, 1s, 1h,
                   "A chunkserver silent for so long gets no new replicas.");
  config->Duration("dead_after", &o.dead_after, 1s, 24h, "Replicas of a chunkserver silent for so long count as lost.");
  config->Duration("soft_limit", &o.soft_limit, 1s, 1h,
                   "Another client may claim a file whose writer was silent for so long.");
  config->Duration("hard_limit", &o.hard_limit, 1s, 24h,
                   "The master takes a file back from a writer silent for so long.");
  config->Duration("token_key_rotation", &o.token_key_rotation, 1s, 24h * 365,
                   "How often a new key signs the tokens of clients. A token, and the sequencer of a lock, is "
                   "honoured for at least two rotations after it was given.");
  config->Duration("lock_delay", &o.lock_delay, 0s, 1h,
                   "Nobody gets a lock for so long after its holder went without releasing it: what it sent to services "
                   "that check no sequencer may still be on its way.");
  config->Duration("stale_settle", &o.stale_settle, 1s, 24h,
                   "Replicas that count for nothing, stale or corrupt ones, go to quarantine after so long.");
  config->Duration("orphan_grace", &o.orphan_grace, 1min, 24h * 30,
                   "Replicas of chunks that the master has no record of go to quarantine after so long.");
  config->Duration("trash_retention", &o.trash_retention, 0s, 24h * 3650, "How long deleted files can be brought back.");
}

class MasterDaemon final : public Daemon {
 public:
  MasterDaemon(Env& env, MasterOptions options) : master_(env, std::move(options)) {}
  Task<Status> Start() override { return master_.Start(); }
  Task<> Stop() override {
    master_.Stop();
    co_return;
  }

 private:
  Master master_;
};

Task<Result<std::string>> Init(Env* env, std::string dir) {
  auto secret = co_await InitMaster(env, dir);
  if (!secret) co_return Fail(secret.error());
  co_return "cluster " + secret->cluster + " made in " + dir + "; chunkservers need a copy of " + dir + "/" +
      std::string(kSecretFile);
}

}  // namespace
}  // namespace picket

int main(int argc, char** argv) {
  using namespace picket;
  Settings settings;
  Config config;
  Bind(&config, &settings);
  std::string init_dir;
  Config init_config;
  init_config.Text("dir", &init_dir, "Directory to make; its parent must exist.");
  init_config.Required();

  DaemonSpec spec;
  spec.name = "picket-master";
  spec.summary = "The master of a Picket cluster: names, chunks, leases.";
  spec.config = &config;
  spec.listen = &settings.options.listen;
  spec.make = [&](Env& env) -> std::unique_ptr<Daemon> {
    return std::make_unique<MasterDaemon>(env, settings.ToOptions());
  };
  spec.init_config = &init_config;
  spec.init = [&](Env& env) { return Init(&env, init_dir); };
  return RunDaemon(argc, argv, spec);
}
