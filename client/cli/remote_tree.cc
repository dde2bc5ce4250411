#include "client/cli/remote_tree.h"

#include <algorithm>
#include <vector>

#include "client/cli/remote_path.h"

namespace picket::cli {

void AddRemoteTree(Context& context, client::Client& client, const client::FileStatus& source,
                   const std::string& target, Plan* plan) {
  struct Visit {
    client::FileStatus status;
    std::string target;
  };
  std::vector<Visit> waiting{{source, target}};
  while (!waiting.empty()) {
    const Visit visit = std::move(waiting.back());
    waiting.pop_back();
    const client::FileStatus& status = visit.status;
    const PlannedItem item{status.path, visit.target, status.length, status.mode, status.mtime_ns};
    if (status.type == client::FileType::kFile) {
      plan->files.push_back(item);
      continue;
    }
    plan->directories.push_back(item);
    const size_t first = waiting.size();
    auto listed = ForEachEntry(client, status.path, [&](client::FileStatus&& entry) {
      std::string below = JoinPath(visit.target, BaseName(entry.path));
      waiting.push_back({std::move(entry), std::move(below)});
    });
    if (!listed) context.Fail(status.path, listed.error());
    // The first name is visited first.
    std::reverse(waiting.begin() + static_cast<ptrdiff_t>(first), waiting.end());
  }
}

client::Result<> SetAttributes(client::Client& client, const PlannedItem& directory) {
  if (auto set = client.SetMode(directory.target, directory.mode); !set) return std::unexpected(set.error());
  if (auto set = client.SetTimes(directory.target, directory.mtime_ns); !set) return std::unexpected(set.error());
  return {};
}

}  // namespace picket::cli
