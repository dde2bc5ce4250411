#include "tests/sim/run.h"

#include <fmt/format.h>

#include "tests/sim/cluster.h"
#include "tests/sim/workload.h"

namespace picket::sim {
namespace {

// After the last fault: leases, dead servers and clients' patience have run out by then.
constexpr Nanos kHealLimit = 200s;
constexpr Nanos kWindDownLimit = 20min;
constexpr Nanos kVerifyLimit = 30min;

std::unique_ptr<Workload> Make(const std::string& name, const Surroundings& s) {
  if (name == "namespace_mix") return MakeNamespaceMix(s);
  if (name == "contest") return MakeContest(s);
  if (name == "record_append") return MakeRecordAppend(s);
  return MakeWriteRead(s);
}

Config DrawConfig(const RunOptions& options, Rng rng) {
  Config config;
  config.loss = rng.Chance(0.5) ? 0.0 : 0.001;
  config.tail_chance = rng.Chance(0.3) ? 0.05 : 0.005;
  config.drift_ppb_max = 200'000;
  config.payload_corruption = rng.Chance(0.25) ? 0.003 : 0.0;
  config.buggify_site = rng.Chance(0.5) ? 0.25 : 0.0;
  config.print = options.print;
  config.print_from = options.print_from;
  config.log_level = options.level;
  return config;
}

// Everything must work again: a client that has seen nothing of it makes a directory and a whole file.
Task<bool> Probe(Env* env, Endpoint master, std::string path) {
  FileSystemOptions options;
  options.master = std::move(master);
  FileSystem fs(*env, options);
  CreateFileOptions create;
  create.parents = true;
  create.chunk_size = 1 << 20;
  auto writer = co_await fs.Create(path, create);
  if (!writer) co_return false;
  Buffer bytes = Buffer::Copy("all is well");
  auto written = co_await (*writer)->Write(bytes);
  if (!written) co_return false;
  auto closed = co_await (*writer)->Close();
  co_return closed.has_value();
}

Task<> VerifyAll(Env* env, Endpoint master, Workload* workload) {
  FileSystemOptions options;
  options.master = std::move(master);
  FileSystem fs(*env, options);
  co_await workload->Verify(env, &fs);
}

void Drive(World& world, Cluster& cluster, Workload& workload, const RunOptions& options,
           const std::vector<Fault>& faults) {
  cluster.Start();
  if (world.failed()) return;
  const Nanos begin = world.now();
  for (size_t i = 0; i < faults.size(); ++i) {
    if (options.skip.contains(i)) continue;
    world.At(begin + faults[i].at, [&cluster, &fault = faults[i]] { cluster.Apply(fault); });
  }
  cluster.StartClients(&workload);
  world.RunFor(std::chrono::seconds(options.seconds));
  if (world.failed()) return;

  cluster.HealAll();
  if (!world.RunUntil([&] { return cluster.AllRegistered(); }, kHealLimit)) {
    return world.Fail("not-healed", "a server does not come back after the last fault");
  }
  bool well = false;
  for (int i = 0; !well && i < 4 && !world.failed(); ++i) {
    well = RunTask(world, cluster.observer(),
                   Probe(&cluster.observer(), cluster.master_endpoint(), fmt::format("/probe/{}", i)), kHealLimit)
               .value_or(false);
  }
  if (world.failed()) return;
  if (!well) return world.Fail("not-healed", "a new client cannot write a file after the last fault");

  workload.Stop();
  if (!world.RunUntil([&] { return cluster.ClientsDone(); }, kWindDownLimit)) {
    return world.Fail("stuck", "operations do not end of client" + cluster.UnfinishedClients());
  }
  world.RunFor(30s);
  if (!RunTask(world, cluster.observer(), VerifyAll(&cluster.observer(), cluster.master_endpoint(), &workload),
               kVerifyLimit) &&
      !world.failed()) {
    return world.Fail("stuck", "the final reading does not end");
  }
  world.RunFor(10s);
  if (world.failed()) return;
  cluster.CheckDisks();
  cluster.CheckLeaks();
}

}  // namespace

const std::vector<std::string>& WorkloadNames() {
  static const std::vector<std::string> names = {"write_read", "namespace_mix", "contest", "record_append"};
  return names;
}

namespace {

struct Draw {
  Cluster::Shape shape;
  Config config;
  std::vector<Fault> faults;
};

Draw DrawRun(const RunOptions& options) {
  const World streams({}, options.seed);
  Rng rng = streams.Stream("shape");
  Draw draw;
  draw.shape.chunkservers = 3 + rng.Below(3);
  draw.shape.clients = 1 + rng.Below(3);
  draw.config = DrawConfig(options, rng);
  draw.faults = options.faults ? *options.faults
                               : DrawFaults(streams.Stream("faults"),
                                            {.chunkservers = draw.shape.chunkservers,
                                             .clients = draw.shape.clients,
                                             .from = 1s,
                                             .to = std::chrono::seconds(options.seconds)});
  return draw;
}

}  // namespace

std::vector<Fault> DrawFor(const RunOptions& options) { return DrawRun(options).faults; }

RunResult Run(const RunOptions& options) {
  RunResult result;
  result.workload = options.workload;
  if (result.workload.empty()) result.workload = WorkloadNames()[options.seed % WorkloadNames().size()];

  Draw draw = DrawRun(options);
  const Cluster::Shape shape = draw.shape;
  World world(draw.config, options.seed);
  Cluster cluster(world, shape);
  const Surroundings surroundings{.world = &world, .clients = shape.clients, .harm = &cluster.harm()};
  std::unique_ptr<Workload> workload = Make(result.workload, surroundings);
  result.faults = std::move(draw.faults);
  Drive(world, cluster, *workload, options, result.faults);

  if (world.failed()) cluster.NoteReplicas();
  result.hash = world.hash();
  result.virtual_time = world.now();
  result.steps = world.steps();
  result.summary = fmt::format("servers={} clients={} faults={} events={} {}", shape.chunkservers, shape.clients,
                               result.faults.size(), cluster.checker().events(), workload->Summary());
  result.violation = world.violation();
  result.log.assign(world.log().begin(), world.log().end());
  world.ShutDown();  // while those whom its nodes know are still there
  return result;
}

}  // namespace picket::sim
