#include "client/cli/commands.h"

#include <algorithm>

#include "client/cli/text.h"

namespace picket::cli {
namespace {

constexpr Command kCommands[] = {
    {"put", "[OPTIONS] SOURCE... DESTINATION",
     "Copy local files or directories (or - for standard input) into the store", RunPut},
    {"get", "[OPTIONS] SOURCE... [DESTINATION]", "Copy files or directories out of the store", RunGet},
    {"cat", "PATH...", "Write files to standard output", RunCat},
    {"tail", "[-f] PATH", "Write the last KiB of a file to standard output", RunTail},
    {"ls", "[OPTIONS] [PATH...]", "List files and directories", RunLs},
    {"mkdir", "[-p] PATH...", "Make directories", RunMkdir},
    {"mv", "[-f] SOURCE... DESTINATION", "Rename or move files and directories", RunMv},
    {"cp", "[OPTIONS] SOURCE... DESTINATION", "Copy files or directories within the store", RunCp},
    {"rm", "[-r] [-f] [-skipTrash] PATH...", "Move files and directories to the trash", RunRm},
    {"stat", "[FORMAT] PATH...", "Print attributes in a format", RunStat},
    {"test", "-e|-d|-f|-z PATH", "Answer by the exit code: 0 yes, 1 no", RunTest},
    {"touch", "[-c] PATH...", "Make empty files, or set the modification time to now", RunTouch},
    {"du", "[-s] [-h] [PATH...]", "Print the space that files and directories take", RunDu},
    {"df", "[-h]", "Print the capacity of the cluster", RunDf},
    {"count", "[-h] PATH...", "Count directories, files and bytes", RunCount},
    {"checksum", "PATH...", "Print a checksum of files, computed from their chunks' digests", RunChecksum},
    {"chunk", "show PATH|ID", "Show chunks and their replicas: version, generation, primary", RunChunk},
    {"admin", "report", "Show the state of the cluster and its servers", RunAdmin},
    {"dev", "up|status|down|wipe [OPTIONS]", "Run a local cluster of real processes", RunDev},
    {"help", "[COMMAND]", "Explain a command", RunHelp},
    {"version", "", "Print the version", RunVersion},
};

struct Alias {
  std::string_view word;
  std::string_view name;
};

constexpr Alias kAliases[] = {
    {"copyFromLocal", "put"}, {"copyToLocal", "get"},   {"touchz", "touch"},
    {"--help", "help"},       {"--version", "version"}, {"-h", "help"},
};

}  // namespace

std::span<const Command> Commands() { return kCommands; }

const Command* FindCommand(std::string_view word) {
  auto named = [](std::string_view name) -> const Command* {
    for (const Alias& alias : kAliases) {
      if (alias.word == name) name = alias.name;
    }
    const auto* found = std::find_if(std::begin(kCommands), std::end(kCommands),
                                     [name](const Command& command) { return command.name == name; });
    return found == std::end(kCommands) ? nullptr : found;
  };
  if (const Command* command = named(word)) return command;
  return word.size() > 1 && word[0] == '-' ? named(word.substr(1)) : nullptr;
}

std::string_view NearestCommand(std::string_view word) {
  while (word.starts_with('-')) word.remove_prefix(1);
  std::string_view nearest;
  // Two slips in a long word, one in a short one.
  int best = word.size() > 3 ? 3 : 2;
  for (const Command& command : kCommands) {
    const int distance = EditDistance(word, command.name);
    if (distance < best) {
      best = distance;
      nearest = command.name;
    }
  }
  return nearest;
}

}  // namespace picket::cli
