#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/destination.h"
#include "client/cli/local_file.h"
#include "client/cli/plan.h"
#include "client/cli/remote_path.h"
#include "client/cli/remote_tree.h"
#include "client/cli/upload.h"
#include "client/cli/write_options.h"

namespace picket::cli {
namespace {

using client::Client;
using client::Result;

struct PutOptions {
  bool force = false;
  bool preserve = false;
  bool follow = false;
  bool no_sync = false;
  uint32_t threads = 1;
  uint32_t replication = 0;
  uint64_t chunk_size = 0;
  client::Conditions conditions;
  HoldOptions hold;

  client::CreateOptions Create() const {
    // Who names the version that is to be replaced means to replace it.
    const bool replace = force || conditions.if_version || conditions.if_revision;
    client::CreateOptions create{.overwrite = replace,
                                 .replication = replication,
                                 .chunk_size = chunk_size,
                                 .sync_on_close = !no_sync,
                                 .conditions = conditions};
    hold.ApplyTo(create);
    return create;
  }
};

// The local trees behind the sources. Symbolic links are followed only on request, and special files
// never: both are named.
class LocalTree {
 public:
  LocalTree(Context& context, bool follow, Plan* plan) : context_(context), follow_(follow), plan_(plan) {}

  void Add(const std::string& source, const std::string& target) {
    const auto status = StatLocal(source, follow_);
    if (!status) return context_.Fail(source, status.error());
    const PlannedItem item{source, target, status->length, status->mode, status->mtime_ns};
    switch (status->type) {
      case LocalStatus::Type::kFile:
        plan_->files.push_back(item);
        return;
      case LocalStatus::Type::kDirectory:
        AddDirectory(item, status->identity);
        return;
      case LocalStatus::Type::kSymlink:
        return context_.Skip(source, "a symbolic link; -L follows it");
      case LocalStatus::Type::kSpecial:
        return context_.Skip(source, status->type_name);
    }
  }

 private:
  void AddDirectory(const PlannedItem& item, std::pair<dev_t, ino_t> identity) {
    if (!open_.insert(identity).second) return context_.Skip(item.source, "a symbolic link to a directory around it");
    const auto names = ListLocal(item.source);
    if (names) {
      plan_->directories.push_back(item);
      for (const std::string& name : *names) Add(JoinPath(item.source, name), JoinPath(item.target, name));
    } else {
      context_.Fail(item.source, names.error());
    }
    open_.erase(identity);
  }

  Context& context_;
  const bool follow_;
  Plan* plan_;
  std::set<std::pair<dev_t, ino_t>> open_;  // the directories that we are in
};

// The name a source has at its destination: of "a/b/" it is "b", of "." the directory's own.
std::string NameOf(const std::string& source) {
  std::string trimmed = source;
  while (trimmed.size() > 1 && trimmed.ends_with('/')) trimmed.pop_back();
  const std::string name(BaseName(trimmed));
  if (name != "." && name != "..") return name;
  std::error_code error;
  return std::filesystem::canonical(trimmed, error).filename().string();
}

void PutStandardInput(Context& context, Client& client, const PutOptions& options, const Destination& destination) {
  if (destination.is_directory) {
    context.Fail(destination.path, kExitUsage,
                 "standard input has no name to give to a file in a directory; name the file");
    return;
  }
  const ByteSource source{
      .read = [](void* into, size_t size) { return ReadLocal(STDIN_FILENO, into, size); },
      .wait_fd = STDIN_FILENO,
  };
  const Plan plan{.directories = {}, .files = {{.source = "-", .target = destination.path}}};
  const PlanSteps steps{
      .make_directory = {},
      .copy_file = [&](Progress& progress, const PlannedItem& file) -> Result<uint64_t> {
        const auto closed = Upload(context, client, progress, source, file.target, options.Create());
        if (!closed) return std::unexpected(closed.error());
        return closed->length;
      },
      .failures_name_source = false,
      .finish_directory = {},
  };
  RunPlan(context, plan, steps, 1);
}

Result<uint64_t> PutFile(Context& context, Client& client, const PutOptions& options, Progress& progress,
                         const PlannedItem& file) {
  auto fd = OpenForReading(file.source);
  if (!fd) return std::unexpected(fd.error());
  const ByteSource source{.read = [&fd](void* into, size_t size) { return ReadLocal(fd->get(), into, size); }};
  client::CreateOptions create = options.Create();
  if (options.preserve) {
    create.mode = file.mode;
    create.mtime_ns = file.mtime_ns;
  }
  const auto closed = Upload(context, client, progress, source, file.target, create);
  if (!closed) return std::unexpected(closed.error());
  return closed->length;
}

void PutFiles(Context& context, Client& client, const PutOptions& options, const std::vector<std::string>& sources,
              const Destination& destination) {
  Plan plan;
  LocalTree tree(context, options.follow, &plan);
  for (const std::string& source : sources) tree.Add(source, destination.For(NameOf(source)));
  if (!FitConditions(context, options.conditions, plan.files.size() + plan.directories.size())) return;

  PlanSteps steps{
      .make_directory = [&](const PlannedItem& directory) { return EnsureDirectory(client, directory.target); },
      .copy_file = [&](Progress& progress,
                       const PlannedItem& file) { return PutFile(context, client, options, progress, file); },
      .failures_name_source = false,
      .finish_directory = {},
  };
  if (options.preserve) {
    steps.finish_directory = [&](const PlannedItem& directory) { return SetAttributes(client, directory); };
  }
  RunPlan(context, plan, steps, options.threads);
}

}  // namespace

int RunPut(Context& context, const std::vector<std::string>& args) {
  PutOptions options;
  std::vector<std::string> paths;
  Arguments arguments(context);
  arguments
      .Flag("-f,--force", options.force, "Replace existing files; each keeps its old content until the new is closed")
      .Flag("-p,--preserve", options.preserve, "Keep modes and modification times")
      .Flag("-L,--dereference", options.follow, "Follow symbolic links, which are skipped otherwise")
      .Number("-t,--threads", options.threads, 1, 64, "Copy up to N files at once")
      .Number("--replication", options.replication, 1, 16, "Replicas of each chunk")
      .Bytes("--chunk-size", options.chunk_size, "Bytes of a chunk: a power of two from 1M to 1G")
      .Flag("--no-sync", options.no_sync, "Close files when their bytes are on every replica, not yet on its disk");
  AddConditions(arguments, options.conditions);
  options.hold.AddTo(arguments);
  arguments.Positionals("paths", paths, 2, Arguments::kAnyNumber, "Sources (- is standard input), then the destination");
  if (auto code = arguments.Parse(args)) return *code;

  const std::vector<std::string> sources(paths.begin(), paths.end() - 1);
  const bool has_standard_input = std::ranges::find(sources, "-") != sources.end();
  if (has_standard_input && sources.size() > 1)
    return context.UsageError("standard input cannot be one of several sources");
  Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  const auto destination = RemoteDestination(*client, paths.back(), sources.size());
  if (!destination) {
    context.Fail(paths.back(), destination.error());
  } else if (has_standard_input) {
    PutStandardInput(context, *client, options, *destination);
  } else {
    PutFiles(context, *client, options, sources, *destination);
  }
  return context.Finish();
}

}  // namespace picket::cli
