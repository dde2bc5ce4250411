// The smallest server on common/daemon, for daemon_test.py.
#include "common/daemon/daemon.h"
#include "common/obs/log.h"

namespace picket {
namespace {

struct Settings {
  std::string dir;
  int64_t replication = 3;
  Endpoint listen{"127.0.0.1", 7400};
  bool fail_start = false;
  bool hang_stop = false;
};

class Example final : public Daemon {
 public:
  Example(Env& env, const Settings& settings) : env_(env), settings_(settings) {}
  ~Example() override { PICKET_LOG(env_, kInfo, "destroyed"); }
  Task<Status> Start() override {
    if (settings_.fail_start) co_return Fail(Error(Code::kNotFound, settings_.dir + " is empty").WithNextStep("mount it"));
    env_.Spawn(Busy(&env_));
    PICKET_LOG(env_, kInfo, "serving with {} replicas", settings_.replication);
    co_return Status();
  }
  Task<> Stop() override {
    PICKET_LOG(env_, kInfo, "stop was called");
    if (settings_.hang_stop) co_await env_.Sleep(1h);
  }

 private:
  // Still suspended when the process stops.
  static Task<> Busy(Env* env) {
    while (true) co_await env->Sleep(1ms);
  }
  Env& env_;
  const Settings& settings_;
};

Task<Result<std::string>> Init(std::string dir) {
  if (dir == "/full") co_return Fail(Code::kNoSpace, "/full has no room");
  co_return "initialised " + dir;
}

}  // namespace
}  // namespace picket

int main(int argc, char** argv) {
  using namespace picket;
  Settings settings;
  Config config;
  config.Text("dir", &settings.dir, "Where everything is kept.");
  config.Required();
  config.Integer("replication", &settings.replication, 1, 16, "Replicas of a new file.");
  config.Address("listen", &settings.listen, "Where to listen.", 7400);
  config.Bool("test.fail_start", &settings.fail_start, "Fail.");
  config.Bool("test.hang_stop", &settings.hang_stop, "Hang.");

  std::string init_dir;
  Config init;
  init.Text("dir", &init_dir, "The directory to make.");
  init.Required();

  DaemonSpec spec;
  spec.name = "picket-example";
  spec.summary = "An example.";
  spec.config = &config;
  spec.listen = &settings.listen;
  spec.make = [&](Env& env) { return std::make_unique<Example>(env, settings); };
  spec.init_config = &init;
  spec.init = [&](Env&) { return Init(init_dir); };
  return RunDaemon(argc, argv, spec);
}
