#include <fmt/format.h>

#include <algorithm>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/facts.h"
#include "client/cli/remote_path.h"
#include "client/cli/text.h"

namespace picket::cli {
namespace {

using client::Client;
using client::FileStatus;
using client::FileType;

struct LsOptions {
  bool recursive = false;
  bool human = false;
  bool directory = false;
  bool paths_only = false;
  bool by_time = false;
  bool by_size = false;
  bool reverse = false;
};

class Lister {
 public:
  Lister(Context& context, Client& client, const LsOptions& options)
      : context_(context), client_(client), options_(options) {}

  void List(const FileStatus& top) {
    if (top.type == FileType::kFile || options_.directory) {
      Print({top});
    } else {
      ListDirectory(top.path);
    }
  }

  Json entries() && { return std::move(entries_); }

 private:
  void ListDirectory(const std::string& path) {
    std::vector<FileStatus> entries;
    auto listed = ForEachEntry(client_, path, [&](FileStatus&& entry) { entries.push_back(std::move(entry)); });
    if (!listed) return context_.Fail(path, listed.error());
    context_.Succeed();
    Sort(&entries);
    if (!options_.recursive) {
      const bool header = !options_.paths_only && !context_.options.json && !entries.empty();
      if (header) context_.out.Print("Found {} items\n", entries.size());
      return Print(entries);
    }
    for (const FileStatus& entry : entries) {
      Print({entry});
      if (entry.type == FileType::kDirectory) ListDirectory(entry.path);
    }
  }

  void Sort(std::vector<FileStatus>* entries) const {
    auto before = [this](const FileStatus& a, const FileStatus& b) {
      if (options_.by_time && a.mtime_ns != b.mtime_ns) return a.mtime_ns > b.mtime_ns;
      if (options_.by_size && a.length != b.length) return a.length > b.length;
      return a.path < b.path;
    };
    std::ranges::sort(*entries, before);
    if (options_.reverse) std::ranges::reverse(*entries);
  }

  // A column is never empty: what splits lines at blanks counts on it.
  std::string Who(const std::string& name) const { return name.empty() ? "-" : context_.out.Name(name); }

  // The columns of `hdfs dfs -ls`.
  void Print(const std::vector<FileStatus>& entries) {
    if (context_.options.json) {
      for (const FileStatus& entry : entries) entries_.push_back(FactsOf(entry));
      return;
    }
    auto size_of = [this](const FileStatus& entry) {
      return options_.human ? HumanBytes(entry.length) : fmt::format("{}", entry.length);
    };
    size_t owner_width = 0;
    size_t group_width = 0;
    size_t size_width = 10;
    for (const FileStatus& entry : entries) {
      owner_width = std::max(owner_width, Who(entry.owner).size());
      group_width = std::max(group_width, Who(entry.group).size());
      size_width = std::max(size_width, size_of(entry).size());
    }
    for (const FileStatus& entry : entries) {
      const std::string path = context_.out.Name(entry.path);
      if (options_.paths_only) {
        context_.out.Print("{}\n", path);
        continue;
      }
      const bool directory = entry.type == FileType::kDirectory;
      context_.out.Print("{}{} {:>3} {:<{}} {:<{}} {:>{}} {} {}\n", directory ? 'd' : '-', PermissionText(entry.mode),
                         directory ? "-" : fmt::format("{}", entry.replication), Who(entry.owner), owner_width,
                         Who(entry.group), group_width, size_of(entry), size_width,
                         LocalTime(entry.mtime_ns, "%Y-%m-%d %H:%M"), path);
    }
  }

  Context& context_;
  Client& client_;
  const LsOptions& options_;
  Json entries_ = Json::array();
};

}  // namespace

int RunLs(Context& context, const std::vector<std::string>& args) {
  LsOptions options;
  std::vector<std::string> paths;
  Arguments arguments(context);
  arguments.Flag("-R,--recursive", options.recursive, "Directories with everything below them")
      .Flag("-h,--human-readable", options.human, "Sizes in K, M, G: powers of 1024")
      .Flag("-d,--directory", options.directory, "Directories themselves, not what is in them")
      .Flag("-C", options.paths_only, "Paths only")
      .Flag("-t", options.by_time, "Newest first")
      .Flag("-S", options.by_size, "Largest first")
      .Flag("-r,--reverse", options.reverse, "In the reverse order")
      .Positionals("paths", paths, 0, Arguments::kAnyNumber, "Files and directories; without one, /user/<user>");
  if (auto code = arguments.Parse(args)) return *code;
  Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  if (paths.empty()) paths.emplace_back(".");

  Lister lister(context, *client, options);
  for (const std::string& argument : paths) {
    const auto found = Expand(*client, argument);
    if (!found) {
      context.Fail(argument, found.error());
      continue;
    }
    context.Succeed();
    for (const FileStatus& top : *found) lister.List(top);
  }
  if (context.options.json) context.out.PrintJson({{"entries", std::move(lister).entries()}});
  return context.Finish();
}

}  // namespace picket::cli
