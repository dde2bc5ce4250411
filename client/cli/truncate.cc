#include <fmt/format.h>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/facts.h"
#include "client/cli/remote_path.h"
#include "client/cli/text.h"
#include "client/cli/write_options.h"

namespace picket::cli {

int RunTruncate(Context& context, const std::vector<std::string>& args) {
  bool wait = false;
  client::TruncateOptions options;
  std::vector<std::string> words;
  Arguments arguments(context);
  arguments
      .Flag("-w,--wait", wait, "As in hdfs; it is always waited for: the command ends when the file has its length")
      .Text("--writer-id", options.writer_id, "ID",
            "The logical writer: a file that it holds itself, from an earlier start, is taken over at once");
  AddConditions(arguments, options.conditions);
  arguments.Positionals("words", words, 2, Arguments::kAnyNumber, "The length (such as 64M), then files");
  if (auto code = arguments.Parse(args)) return *code;
  const auto length = ParseBytes(words.front());
  if (!length) return context.UsageError(fmt::format("\"{}\" is not a length such as 64M", words.front()));
  words.erase(words.begin());
  if (!FitConditions(context, options.conditions, words.size())) return context.Finish();
  client::Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  Json entries = Json::array();
  for (const std::string& argument : words) {
    const std::string path = ResolvePath(argument, client->user());
    const auto status = client->Truncate(path, *length, options);
    if (!status) {
      context.Fail(path, status.error());
      continue;
    }
    context.Succeed();
    if (context.options.json) {
      entries.push_back(FactsOf(*status));
    } else {
      context.out.Print("Truncated {} to length: {}\n", context.out.Name(path), status->length);
    }
  }
  if (context.options.json) context.out.PrintJson({{"entries", std::move(entries)}});
  return context.Finish();
}

}  // namespace picket::cli
