#include <fmt/format.h>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/destination.h"
#include "client/cli/plan.h"
#include "client/cli/remote_path.h"
#include "client/cli/remote_tree.h"
#include "client/cli/upload.h"
#include "client/cli/write_options.h"

namespace picket::cli {
namespace {

using client::Client;
using client::FileStatus;
using client::Result;

struct CpOptions {
  bool force = false;
  bool preserve = false;
  uint32_t threads = 1;
  client::Conditions conditions;  // of the target
};

Result<uint64_t> CopyFile(Context& context, Client& client, const CpOptions& options, Progress& progress,
                          const PlannedItem& file) {
  auto reader = client.Open(file.source);
  if (!reader) return std::unexpected(reader.error());
  const FileStatus& status = (*reader)->status();
  client::CreateOptions create{
      .overwrite = options.force || options.conditions.if_version || options.conditions.if_revision,
      .replication = status.replication,
      .chunk_size = status.chunk_size,
      .conditions = options.conditions};
  if (options.preserve) {
    create.mode = file.mode;
    create.mtime_ns = file.mtime_ns;
  }
  const ByteSource source{.read = [&reader](void* into, size_t size) { return (*reader)->Read(into, size); }};
  const auto closed = Upload(context, client, progress, source, file.target, create);
  if (!closed) return std::unexpected(closed.error());
  return closed->length;
}

void AddSources(Context& context, Client& client, const std::string& argument, const Destination& destination,
                Plan* plan) {
  const auto found = Expand(client, argument);
  if (!found) return context.Fail(argument, found.error());
  if (found->size() > 1 && !destination.is_directory) {
    return context.Fail(destination.path, kExitFailure, "several sources need a directory to go to");
  }
  for (const FileStatus& source : *found) {
    const std::string target = destination.For(BaseName(source.path));
    if (IsWithin(target, source.path)) {
      context.Fail(source.path, kExitUsage, fmt::format("cannot be copied onto or into itself ({})", target));
    } else {
      AddRemoteTree(context, client, source, target, plan);
    }
  }
}

}  // namespace

int RunCp(Context& context, const std::vector<std::string>& args) {
  CpOptions options;
  std::vector<std::string> paths;
  Arguments arguments(context);
  arguments.Flag("-f,--force", options.force, "Replace existing files")
      .Flag("-p,--preserve", options.preserve, "Keep modes and modification times")
      .Number("-t,--threads", options.threads, 1, 64, "Copy up to N files at once");
  AddConditions(arguments, options.conditions);
  arguments.Positionals("paths", paths, 2, Arguments::kAnyNumber,
                   "Sources (directories with all in them), then the destination");
  if (auto code = arguments.Parse(args)) return *code;
  Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  const auto destination = RemoteDestination(*client, paths.back(), paths.size() - 1);
  if (!destination) {
    context.Fail(paths.back(), destination.error());
    return context.Finish();
  }
  paths.pop_back();

  Plan plan;
  for (const std::string& argument : paths) AddSources(context, *client, argument, *destination, &plan);
  if (!FitConditions(context, options.conditions, plan.files.size() + plan.directories.size())) return context.Finish();
  PlanSteps steps{
      .make_directory = [&](const PlannedItem& directory) { return EnsureDirectory(*client, directory.target); },
      .copy_file = [&](Progress& progress,
                       const PlannedItem& file) { return CopyFile(context, *client, options, progress, file); },
      .failures_name_source = false,
      .finish_directory = {},
  };
  if (options.preserve) {
    steps.finish_directory = [&](const PlannedItem& directory) { return SetAttributes(*client, directory); };
  }
  RunPlan(context, plan, steps, options.threads);
  return context.Finish();
}

}  // namespace picket::cli
