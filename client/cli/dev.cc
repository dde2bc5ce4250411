#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/dev/cluster.h"
#include "client/cli/table.h"

namespace picket::cli {
namespace {

using dev::Cluster;
using dev::MemberStatus;

struct DevOptions {
  std::string directory;
  uint32_t chunkservers = 0;
  std::vector<std::string> settings;
};

int Fail(Context& context, const dev::DevError& error) {
  context.Fail(error.object, error.code, error.text);
  return context.Finish();
}

// "ROLE.KEY=VALUE"; the key may have dots of its own.
bool ParseSetting(const std::string& text, dev::UpOptions* into) {
  const size_t dot = text.find('.');
  const size_t equals = text.find('=');
  if (dot == std::string::npos || equals == std::string::npos || dot + 1 >= equals) return false;
  const std::string role = text.substr(0, dot);
  if (role != "master" && role != "chunkserver") return false;
  into->settings[role][text.substr(dot + 1, equals - dot - 1)] = text.substr(equals + 1);
  return true;
}

std::string_view Overall(const std::vector<MemberStatus>& members) {
  const auto running = std::ranges::count(members, MemberStatus::Run::kRunning, &MemberStatus::run);
  if (running == std::ssize(members)) return "running";
  return running == 0 ? "stopped" : "degraded";
}

int PrintStatus(Context& context, const Cluster& cluster) {
  const auto members = cluster.Status();
  if (!members) return Fail(context, members.error());
  const std::string_view overall = Overall(*members);
  if (context.options.json) {
    Json processes = Json::array();
    for (const MemberStatus& status : *members) {
      const bool known = status.run != MemberStatus::Run::kStopped;
      processes.push_back({{"name", status.member.name},
                           {"role", status.member.role},
                           {"state", RunName(status.run)},
                           {"pid", known ? Json(status.process.pid) : Json()},
                           {"address", status.member.address()},
                           {"port", status.member.port},
                           {"log", cluster.layout().log(status.member.name)},
                           {"data", cluster.layout().data(status.member.name)}});
    }
    context.out.PrintJson({{"directory", cluster.layout().directory()},
                           {"state", overall},
                           {"master", members->front().member.address()},
                           {"client_config", cluster.layout().client_config()},
                           {"processes", std::move(processes)}});
  } else {
    context.out.Print("{}: {}\n", cluster.layout().directory(), overall);
    Table table({{"PROCESS"}, {"STATE"}, {"PID", Table::Align::kRight}, {"ADDRESS"}, {"LOG"}});
    for (const MemberStatus& status : *members) {
      const bool known = status.run != MemberStatus::Run::kStopped;
      table.Add({status.member.name, std::string(RunName(status.run)),
                 known ? fmt::format("{}", status.process.pid) : "-", status.member.address(),
                 cluster.layout().log(status.member.name)});
    }
    context.out.Write(table.Render());
  }
  context.out.Flush();
  return overall == "running" ? kExitOk : overall == "stopped" ? kExitUnavailable : kExitPartial;
}

int Up(Context& context, Cluster& cluster, const DevOptions& options) {
  dev::UpOptions up{.chunkservers = options.chunkservers};
  for (const std::string& setting : options.settings) {
    if (!ParseSetting(setting, &up)) {
      return context.UsageError(fmt::format("--set {}: should be master.KEY=VALUE or chunkserver.KEY=VALUE", setting));
    }
  }
  if (auto done = cluster.Up(up); !done) return Fail(context, done.error());
  if (context.options.json) return PrintStatus(context, cluster);

  const dev::Layout& layout = cluster.layout();
  const bool found_by_itself = layout.directory() == dev::DefaultDirectory();
  const std::string dir = found_by_itself ? "" : fmt::format(" --dir {}", layout.directory());
  context.out.Print("The cluster is up. Logs, data and configuration are in {}\n", layout.directory());
  if (!found_by_itself) context.out.Print("  export PICKET_CONFIG={}\n", layout.client_config());
  context.out.Write(
      "  picket put FILE /FILE      copy a file into it\n"
      "  picket ls /                see what is there\n"
      "  picket chunk show /FILE    see its chunks and replicas\n");
  context.out.Print(
      "  picket dev status{0}\n  picket dev down{0}         stop it; dev up starts it again with all its data\n", dir);
  return context.Finish();
}

int Down(Context& context, Cluster& cluster) {
  const auto in_time = cluster.Down();
  if (!in_time) return Fail(context, in_time.error());
  if (!*in_time) context.Warn("", "some processes did not stop in time and were killed");
  return context.Finish();
}

}  // namespace

int RunDev(Context& context, const std::vector<std::string>& args) {
  DevOptions options;
  std::vector<std::string> words;
  Arguments arguments(context);
  arguments
      .Text("--dir", options.directory, "DIR",
            "Everything of the cluster is in it (else PICKET_DEV_DIR, ~/.local/share/picket/dev)")
      .Number("--chunkservers", options.chunkservers, 1, 64, "With up: how many (3, or as many as there are)")
      .Texts("--set", options.settings, "ROLE.KEY=VALUE",
             "With up: a setting of master or chunkserver, kept; may be repeated")
      .Words(words, {"up", "status", "down", "wipe"}, 1, "up, status, down or wipe");
  if (auto code = arguments.Parse(args)) return *code;
  const std::string directory = options.directory.empty()
                                    ? dev::DefaultDirectory()
                                    : std::filesystem::absolute(options.directory).lexically_normal().string();
  Cluster cluster(dev::Layout(directory), [&context](std::string_view line) {
    // What a command that prints facts is doing is no part of them.
    if (context.options.json) {
      context.Note(line);
    } else {
      context.out.Print("{}\n", line);
      context.out.Flush();
    }
  });
  const std::string& verb = words[0];
  if (verb == "up") return Up(context, cluster, options);
  if (verb == "status") return PrintStatus(context, cluster);
  if (verb == "down") return Down(context, cluster);
  const auto wiped = cluster.Wipe();
  return wiped ? context.Finish() : Fail(context, wiped.error());
}

}  // namespace picket::cli
