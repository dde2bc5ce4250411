#include <fmt/format.h>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/remote_path.h"
#include "client/cli/table.h"
#include "client/cli/text.h"

namespace picket::cli {
namespace {

using client::Client;
using client::FileStatus;
using client::FileType;

class SpaceReport {
 public:
  SpaceReport(Context& context, Client& client, bool human) : context_(context), client_(client), human_(human) {}

  void Add(const FileStatus& entry) {
    client::Summary summary{.bytes = entry.length, .bytes_with_replicas = entry.stored_bytes * entry.replication};
    if (entry.type == FileType::kDirectory) {
      auto counted = client_.Summarize(entry.path);
      if (!counted) return context_.Fail(entry.path, counted.error());
      summary = *counted;
    }
    context_.Succeed();
    table_.Add({Size(summary.bytes), Size(summary.bytes_with_replicas), context_.out.Name(entry.path)});
    entries_.push_back(
        {{"path", entry.path}, {"bytes", summary.bytes}, {"bytes_with_replicas", summary.bytes_with_replicas}});
  }

  void Print() {
    if (context_.options.json) {
      context_.out.PrintJson({{"entries", std::move(entries_)}});
    } else {
      context_.out.Write(table_.Render());
    }
  }

 private:
  std::string Size(uint64_t bytes) const { return human_ ? HumanBytes(bytes) : fmt::format("{}", bytes); }

  Context& context_;
  Client& client_;
  const bool human_;
  Table table_{{{""}, {""}, {""}}};
  Json entries_ = Json::array();
};

}  // namespace

int RunDu(Context& context, const std::vector<std::string>& args) {
  bool sum = false;
  bool human = false;
  std::vector<std::string> paths;
  Arguments arguments(context);
  arguments.Flag("-s,--summarize", sum, "One line for each path, not for what is in it")
      .Flag("-h,--human-readable", human, "Sizes in K, M, G: powers of 1024")
      .Positionals("paths", paths, 0, Arguments::kAnyNumber, "Files and directories; without one, /user/<user>");
  if (auto code = arguments.Parse(args)) return *code;
  Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  if (paths.empty()) paths.emplace_back(".");

  SpaceReport report(context, *client, human);
  for (const std::string& argument : paths) {
    const auto found = Expand(*client, argument);
    if (!found) {
      context.Fail(argument, found.error());
      continue;
    }
    for (const FileStatus& top : *found) {
      if (sum || top.type == FileType::kFile) {
        report.Add(top);
        continue;
      }
      auto listed = ForEachEntry(*client, top.path, [&report](FileStatus&& entry) { report.Add(entry); });
      if (!listed) context.Fail(top.path, listed.error());
    }
  }
  report.Print();
  return context.Finish();
}

}  // namespace picket::cli
