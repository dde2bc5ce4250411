#include <fmt/format.h>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/remote_path.h"
#include "client/cli/write_options.h"

namespace picket::cli {
namespace {

struct RmOptions {
  bool recursive = false;
  bool force = false;
  bool skip_trash = false;
  client::Conditions conditions;
};

class Remover {
 public:
  Remover(Context& context, client::Client& client, const RmOptions& options)
      : context_(context), client_(client), options_(options) {}

  void Remove(const std::string& argument) {
    const auto found = Expand(client_, argument);
    if (!found) {
      if (options_.force && found.error().kind == client::ErrorKind::kNotFound) return context_.Succeed();
      return context_.Fail(argument, found.error());
    }
    if (!FitConditions(context_, options_.conditions, found->size())) return;
    for (const client::FileStatus& entry : *found) RemoveEntry(entry);
  }

  Json removed() && { return std::move(removed_); }

 private:
  void RemoveEntry(const client::FileStatus& entry) {
    if (entry.type == client::FileType::kDirectory && !options_.recursive) {
      return context_.Fail(entry.path, kExitFailure, "IS_DIRECTORY: a directory; -r removes it and everything in it");
    }
    const auto trash = client_.Remove(
        entry.path,
        {.recursive = options_.recursive, .skip_trash = options_.skip_trash, .conditions = options_.conditions});
    if (!trash) {
      if (options_.force && trash.error().kind == client::ErrorKind::kNotFound) return context_.Succeed();
      return context_.Fail(entry.path, trash.error());
    }
    context_.Succeed();
    if (context_.options.json) {
      removed_.push_back({{"path", entry.path}, {"trash", trash->empty() ? Json() : Json(*trash)}});
    } else if (trash->empty()) {
      context_.out.Print("Deleted {}\n", context_.out.Name(entry.path));
    } else {
      context_.out.Print("Moved: '{}' to trash at: {}\n", context_.out.Name(entry.path), context_.out.Name(*trash));
    }
  }

  Context& context_;
  client::Client& client_;
  const RmOptions& options_;
  Json removed_ = Json::array();
};

}  // namespace

int RunRm(Context& context, const std::vector<std::string>& args) {
  RmOptions options;
  std::vector<std::string> paths;
  Arguments arguments(context);
  arguments.Flag("-r,-R,--recursive", options.recursive, "Directories with everything in them")
      .Flag("-f,--force", options.force, "What does not exist is no error")
      .Flag("--skip-trash", options.skip_trash, "Do not keep it in the trash (also spelled -skipTrash)");
  AddConditions(arguments, options.conditions);
  arguments.Positionals("paths", paths, 1, Arguments::kAnyNumber, "Files and directories");
  if (auto code = arguments.Parse(args)) return *code;
  if (!FitConditions(context, options.conditions, paths.size())) return context.Finish();
  client::Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  Remover remover(context, *client, options);
  for (const std::string& argument : paths) remover.Remove(argument);
  if (context.options.json) context.out.PrintJson({{"removed", std::move(remover).removed()}});
  return context.Finish();
}

}  // namespace picket::cli
