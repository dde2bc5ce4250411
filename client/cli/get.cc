#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "client/cli/arguments.h"
#include "client/cli/cat_file.h"
#include "client/cli/commands.h"
#include "client/cli/destination.h"
#include "client/cli/download.h"
#include "client/cli/local_file.h"
#include "client/cli/plan.h"
#include "client/cli/remote_path.h"
#include "client/cli/remote_tree.h"

namespace picket::cli {
namespace {

using client::Client;
using client::Result;

struct GetOptions {
  bool force = false;
  bool preserve = false;
  uint32_t threads = 1;
};

std::vector<client::FileStatus> ExpandAll(Context& context, Client& client, const std::vector<std::string>& arguments) {
  std::vector<client::FileStatus> sources;
  for (const std::string& argument : arguments) {
    auto found = Expand(client, argument);
    if (!found) {
      context.Fail(argument, found.error());
      continue;
    }
    std::ranges::move(*found, std::back_inserter(sources));
  }
  return sources;
}

void GetFiles(Context& context, Client& client, const GetOptions& options,
              const std::vector<client::FileStatus>& sources, const Destination& destination) {
  Plan plan;
  for (const client::FileStatus& source : sources) {
    AddRemoteTree(context, client, source, destination.For(BaseName(source.path)), &plan);
  }
  std::set<std::string> directories;
  for (const PlannedItem& file : plan.files) {
    const size_t slash = file.target.rfind('/');
    directories.insert(slash == std::string::npos ? "" : file.target.substr(0, slash));
  }
  for (const std::string& directory : directories) PendingFile::RemoveAbandoned(directory);
  // Threads that have no file of their own help with the others' ranges.
  const uint32_t files_at_once = std::max<uint32_t>(1, std::min<uint32_t>(options.threads, plan.files.size()));
  const DownloadOptions download{
      .replace = options.force, .preserve = options.preserve, .streams = options.threads / files_at_once};
  PlanSteps steps{
      .make_directory = [](const PlannedItem& directory) { return MakeLocalDirectory(directory.target); },
      .copy_file =
          [&](Progress& progress, const PlannedItem& file) {
            return Download(client, progress, file.source, file.target, download);
          },
      .failures_name_source = true,
      .finish_directory = {},
  };
  if (options.preserve) {
    steps.finish_directory = [](const PlannedItem& directory) {
      return SetLocalAttributes(directory.target, directory.mode, directory.mtime_ns);
    };
  }
  RunPlan(context, plan, steps, files_at_once);
}

}  // namespace

int RunGet(Context& context, const std::vector<std::string>& args) {
  GetOptions options;
  std::vector<std::string> paths;
  Arguments arguments(context);
  arguments.Flag("-f,--force", options.force, "Replace existing local files")
      .Flag("-p,--preserve", options.preserve, "Keep modes and modification times")
      .Number("-t,--threads", options.threads, 1, 64, "Read up to N files, or ranges of one file, at once")
      .Positionals("paths", paths, 1, Arguments::kAnyNumber,
                   "Sources, then the destination: . if there is only one path, - is standard output");
  if (auto code = arguments.Parse(args)) return *code;
  if (paths.size() == 1) paths.push_back(".");

  Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  const std::string target = paths.back();
  paths.pop_back();
  const auto sources = ExpandAll(context, *client, paths);
  if (sources.empty()) return context.Finish();
  if (target == "-") {
    for (const client::FileStatus& source : sources) CatFile(context, *client, source.path);
    return context.Finish();
  }
  const auto destination = LocalDestination(target, std::max(sources.size(), paths.size()));
  if (!destination) {
    context.Fail(target, destination.error());
  } else {
    GetFiles(context, *client, options, sources, *destination);
  }
  return context.Finish();
}

}  // namespace picket::cli
