#include "client/cli/commands.h"

#include <algorithm>

#include "client/cli/text.h"

namespace picket::cli {
namespace {

constexpr Command kCommands[] = {
    {"put", "[OPTIONS] SOURCE... DESTINATION",
     "Copy local files or directories (or - for standard input) into the store", RunPut},
    {"get", "[OPTIONS] SOURCE... [DESTINATION]", "Copy files or directories out of the store", RunGet},
    {"appendToFile", "[OPTIONS] [SOURCE...] PATH",
     "Append local files (or standard input) to a file, which is made if it is missing", RunAppendToFile},
    {"write", "[OPTIONS] [SOURCE] PATH", "Write a local file (or standard input) into a file, at an offset", RunWrite},
    {"truncate", "[-w] LENGTH PATH...", "Cut files to a length", RunTruncate},
    {"concat", "[OPTIONS] TARGET SOURCE...", "Move the chunks of files to the end of another; the sources cease to exist",
     RunConcat},
    {"records", "append|cat [OPTIONS] PATH...", "Append records to a file that many append to at once, and read them",
     RunRecords},
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
    {"lease", "ls|show|recover [OPTIONS] [PATH]", "Show who is writing files, and end the session of a stalled writer",
     RunLease},
    {"quarantine", "ls|restore|purge [OPTIONS] SERVER [NAME...]", "Replicas that a chunkserver has set aside",
     RunQuarantine},
    {"lock", "[OPTIONS] PATH -- COMMAND...", "Run a command while holding the lock of a path", RunLock},
    {"sequencer", "check|show [OPTIONS] TEXT", "Tell whether the proof of a lock is still good, or what it says", RunSequencer},
    {"admin", "report|adopt|discard [OPTIONS]",
     "Show the state of the cluster; decide about replicas of a history that was lost", RunAdmin},
    {"demo", "fencing [OPTIONS]", "Show on a cluster of its own how old writers, primaries, replicas and masters are refused",
     RunDemo},
    {"dev", "up|status|down|wipe [OPTIONS]", "Run a local cluster of real processes", RunDev},
    {"help", "[COMMAND]", "Explain a command", RunHelp},
    {"version", "", "Print the version", RunVersion},
};

struct Alias {
  std::string_view word;
  std::string_view name;
};

constexpr Alias kAliases[] = {
    {"copyFromLocal", "put"}, {"copyToLocal", "get"},   {"touchz", "touch"}, {"append", "appendToFile"},
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
