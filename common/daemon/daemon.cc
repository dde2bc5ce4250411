#include "common/daemon/daemon.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <vector>

#include "common/env/one_shot.h"
#include "common/env/posix/posix_env.h"
#include "common/env/posix/signals.h"
#include "common/obs/log.h"
#include "common/obs/nearest.h"

namespace picket {
namespace {

constexpr int kExitFine = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

int Complain(const DaemonSpec& spec, int code, std::string_view message) {
  fmt::print(stderr, "{}: {}\n", spec.name, message);
  return code;
}

// ---- flags -----------------------------------------------------------------------------------------

// One flag for each key of `config`; what was given stays text until the file has been read.
struct KeyFlags {
  std::map<std::string, std::string> given;  // by key name

  void Declare(CLI::App* app, const Config& config) {
    for (const Config::Key& key : config.keys()) {
      const std::string doc = key.doc.substr(0, key.doc.find('\n'));
      const std::string note = key.required ? "required" : "default " + key.initial;
      app->add_option_function<std::string>(
             key.flag(), [this, name = key.name](const std::string& text) { given[name] = text; },
             fmt::format("{} [{}]", doc, note))
          ->type_name("VALUE");
    }
  }
  Status Apply(Config* config) const {
    for (const auto& [name, text] : given) {
      for (const Config::Key& key : config->keys()) {
        if (key.name == name) PICKET_TRY(config->Set(name, text, key.flag()));
      }
    }
    return {};
  }
};

struct Flags {
  std::string config_file;
  std::string log_level = "info";
  std::string log_format = "text";
  bool check_config = false;
  bool sample_config = false;
  KeyFlags keys;
  KeyFlags init_keys;
};

// "--chunk-sze" → "unknown flag --chunk-sze; did you mean --chunk-size?"
std::string UnknownFlag(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) known.push_back(option->get_name());
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) known.push_back(sub->get_name());
  const std::string name = word.substr(0, word.find('='));
  return fmt::format("unknown {} {}{}", name.starts_with('-') ? "flag" : "argument", name, DidYouMean(name, known));
}

Result<std::string> ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return Fail(Code::kNotFound, fmt::format("cannot read the configuration file {}: {}", path, std::strerror(errno)));
  }
  return text.str();
}

Status Configure(const Flags& flags, Config* config) {
  if (!flags.config_file.empty()) {
    auto text = ReadText(flags.config_file);
    if (!text) return Fail(text.error());
    PICKET_TRY(config->ParseToml(*text, flags.config_file));
  }
  PICKET_TRY(flags.keys.Apply(config));
  return config->Check();
}

// ---- running ---------------------------------------------------------------------------------------

PosixOptions EnvOptions(const DaemonSpec& spec, const Flags& flags) {
  PosixOptions options;
  options.name = spec.name;
  options.log_format = flags.log_format == "json" ? LogFormat::kJson : LogFormat::kText;
  options.log_level = flags.log_level == "debug"     ? LogLevel::kDebug
                      : flags.log_level == "warning" ? LogLevel::kWarning
                      : flags.log_level == "error"   ? LogLevel::kError
                                                     : LogLevel::kInfo;
  return options;
}

// From the beginning to the end of one server's life.
struct Life {
  explicit Life(PosixEnv& e) : env(e), stop(e) {}

  static Task<> Run(Life* self, Daemon* daemon) {
    auto started = co_await daemon->Start();
    if (started) {
      co_await self->stop.Wait();
      co_await daemon->Stop();
      self->exit_code = kExitFine;
      PICKET_LOG(self->env, kInfo, "stopped");
    } else {
      PICKET_LOG(self->env, kError, "cannot start: {}", started.error().ToString());
    }
    // The loop, which watches signals, ends here; the teardown may yet wait for a disk.
    std::signal(SIGTERM, SIG_DFL);
    std::signal(SIGINT, SIG_DFL);
    self->env.RequestStop();
  }

  PosixEnv& env;
  OneShot<> stop;
  int exit_code = kExitFailed;
};

// By its spelling: an address in 127.0.0.0/8 or ::1, or the name that stands for them.
bool IsLoopback(const std::string& host) {
  const bool numeric = host.find_first_not_of("0123456789.") == std::string::npos;
  return host == "localhost" || host == "::1" || (numeric && host.starts_with("127."));
}

void WarnOfOpenListener(PosixEnv& env, const Endpoint& at) {
  if (IsLoopback(at.host)) return;
  PICKET_LOG(env, kWarning,
             "listening on {}, which other machines can reach: TLS and users are not there yet; whoever connects can "
             "read, change and delete everything",
             at.ToString());
}

int Serve(const DaemonSpec& spec, const Flags& flags) {
  PosixEnv env(EnvOptions(spec, flags));
  auto daemon = spec.make(env);
  Life life(env);
  SignalWatcher signals(env, [&life] { life.stop.Set(); });
  PICKET_LOG(env, kInfo, "{} {} starting", spec.name, PICKET_VERSION);
  if (spec.listen != nullptr) WarnOfOpenListener(env, *spec.listen);
  env.Spawn(Life::Run(&life, daemon.get()));
  env.Run();
  return life.exit_code;
}

Task<> RunInit(PosixEnv* env, const DaemonSpec* spec, std::optional<Result<std::string>>* outcome) {
  auto result = co_await spec->init(*env);
  outcome->emplace(std::move(result));
  env->RequestStop();
}

int Init(const DaemonSpec& spec, const Flags& flags) {
  PICKET_CHECK(spec.init_config != nullptr);
  auto configured = flags.init_keys.Apply(spec.init_config);
  if (configured) configured = spec.init_config->Check();
  if (!configured) return Complain(spec, kExitUsage, configured.error().message);
  std::optional<Result<std::string>> outcome;
  {
    PosixEnv env(EnvOptions(spec, flags));
    env.Spawn(RunInit(&env, &spec, &outcome));
    env.Run();
  }
  if (!outcome) return Complain(spec, kExitFailed, "init was interrupted");
  if (!*outcome) return Complain(spec, kExitFailed, outcome->error().ToString());
  fmt::print("{}\n", **outcome);
  return kExitFine;
}

}  // namespace

int RunDaemon(int argc, char** argv, const DaemonSpec& spec) {
  CLI::App app(spec.summary, spec.name);
  Flags flags;
  app.set_version_flag("--version", fmt::format("{} {}", spec.name, PICKET_VERSION));
  app.add_option("--config", flags.config_file, "Configuration file (TOML); flags override it")->type_name("FILE");
  app.add_flag("--check-config", flags.check_config, "Read the configuration, say whether it is good, and exit");
  app.add_flag("--sample-config", flags.sample_config, "Print a configuration file with every key, and exit");
  app.add_option("--log-level", flags.log_level, "debug, info, warning or error [default info]")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}));
  app.add_option("--log-format", flags.log_format, "text or json, on standard error [default text]")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}));
  app.allow_extras();
  flags.keys.Declare(&app, *spec.config);
  CLI::App* init = nullptr;
  if (spec.init) {
    init = app.add_subcommand("init", "Prepare a directory for a new server, and exit");
    init->allow_extras();
    flags.init_keys.Declare(init, *spec.init_config);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help, --version
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return Complain(spec, kExitUsage, fmt::format("{}; {} --help lists the flags", e.what(), spec.name));
  }
  CLI::App& used = init != nullptr && init->parsed() ? *init : app;
  if (const auto extras = used.remaining(); !extras.empty()) {
    return Complain(spec, kExitUsage, UnknownFlag(used, extras.front()));
  }
  if (&used == init) return Init(spec, flags);
  if (flags.sample_config) {
    fmt::print("{}", spec.config->Sample());
    return kExitFine;
  }
  if (auto configured = Configure(flags, spec.config); !configured) {
    return Complain(spec, kExitUsage, configured.error().message);
  }
  if (flags.check_config) {
    fmt::print("{}: the configuration is good\n", spec.name);
    return kExitFine;
  }
  return Serve(spec, flags);
}

}  // namespace picket
