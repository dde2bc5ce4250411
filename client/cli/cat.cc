#include "client/cli/arguments.h"
#include "client/cli/cat_file.h"
#include "client/cli/commands.h"
#include "client/cli/remote_path.h"

namespace picket::cli {
namespace {

constexpr size_t kBlockBytes = 4 << 20;

}  // namespace

void CatFile(Context& context, client::Client& client, const std::string& path) {
  auto reader = client.Open(path);
  if (!reader) return context.Fail(path, reader.error());
  std::vector<char> block(kBlockBytes);
  while (true) {
    const auto n = (*reader)->Read(block.data(), block.size());
    if (!n) return context.Fail(path, n.error());
    if (*n == 0) return context.Succeed();
    context.out.Write({block.data(), *n});
  }
}

int RunCat(Context& context, const std::vector<std::string>& args) {
  std::vector<std::string> paths;
  Arguments arguments(context);
  arguments.Positionals("paths", paths, 1, Arguments::kAnyNumber, "Files");
  if (auto code = arguments.Parse(args)) return *code;
  client::Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  for (const std::string& argument : paths) {
    const auto found = Expand(*client, argument);
    if (!found) {
      context.Fail(argument, found.error());
      continue;
    }
    for (const client::FileStatus& file : *found) CatFile(context, *client, file.path);
  }
  return context.Finish();
}

}  // namespace picket::cli
