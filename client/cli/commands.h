// The table of commands. One file per command; each has the one function named here.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/cli/context.h"

namespace picket::cli {

struct Command {
  std::string_view name;
  std::string_view synopsis;                                           // what follows the name
  std::string_view summary;                                            // one line
  int (*run)(Context& context, const std::vector<std::string>& args);  // returns the exit code
};

std::span<const Command> Commands();
// Accepts the spelling with a leading dash, as in `hdfs dfs -ls`, and hdfs's other names for a command.
const Command* FindCommand(std::string_view word);
// The name that looks most like the word; empty if none does.
std::string_view NearestCommand(std::string_view word);

int RunAdmin(Context& context, const std::vector<std::string>& args);
int RunAppendToFile(Context& context, const std::vector<std::string>& args);
int RunCat(Context& context, const std::vector<std::string>& args);
int RunChecksum(Context& context, const std::vector<std::string>& args);
int RunChunk(Context& context, const std::vector<std::string>& args);
int RunConcat(Context& context, const std::vector<std::string>& args);
int RunCount(Context& context, const std::vector<std::string>& args);
int RunCp(Context& context, const std::vector<std::string>& args);
int RunDemo(Context& context, const std::vector<std::string>& args);
int RunDev(Context& context, const std::vector<std::string>& args);
int RunDf(Context& context, const std::vector<std::string>& args);
int RunDu(Context& context, const std::vector<std::string>& args);
int RunGet(Context& context, const std::vector<std::string>& args);
int RunHelp(Context& context, const std::vector<std::string>& args);
int RunLease(Context& context, const std::vector<std::string>& args);
int RunLock(Context& context, const std::vector<std::string>& args);
int RunLs(Context& context, const std::vector<std::string>& args);
int RunMkdir(Context& context, const std::vector<std::string>& args);
int RunMv(Context& context, const std::vector<std::string>& args);
int RunPut(Context& context, const std::vector<std::string>& args);
int RunQuarantine(Context& context, const std::vector<std::string>& args);
int RunRecords(Context& context, const std::vector<std::string>& args);
int RunRm(Context& context, const std::vector<std::string>& args);
int RunSequencer(Context& context, const std::vector<std::string>& args);
int RunStat(Context& context, const std::vector<std::string>& args);
int RunTail(Context& context, const std::vector<std::string>& args);
int RunTest(Context& context, const std::vector<std::string>& args);
int RunTouch(Context& context, const std::vector<std::string>& args);
int RunTruncate(Context& context, const std::vector<std::string>& args);
int RunVersion(Context& context, const std::vector<std::string>& args);
int RunWrite(Context& context, const std::vector<std::string>& args);

}  // namespace picket::cli
