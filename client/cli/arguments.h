// The command line of one command: options, positional arguments, --help, and the global options,
// which may stand before or after the verb. A wrapper of CLI11 that knows the `hdfs dfs` spellings
// (-skipTrash) and reports mistakes in the form of the other messages.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/context.h"

namespace picket::cli {

class Arguments {
 public:
  explicit Arguments(Context& context);
  ~Arguments();

  // `names` as in "-f,--force". What is not given keeps the value it has.
  Arguments& Flag(const std::string& names, bool& into, const std::string& help);
  Arguments& Text(const std::string& names, std::string& into, const std::string& metavar, const std::string& help);
  Arguments& Texts(const std::string& names, std::vector<std::string>& into, const std::string& metavar,
                   const std::string& help);
  Arguments& Number(const std::string& names, uint32_t& into, uint32_t min, uint32_t max, const std::string& help);
  Arguments& Number(const std::string& names, std::optional<uint64_t>& into, const std::string& help);
  Arguments& Bytes(const std::string& names, uint64_t& into, const std::string& help);
  Arguments& Bytes(const std::string& names, std::optional<uint64_t>& into, const std::string& help);
  // "60s", "500ms"; at least a millisecond.
  Arguments& Duration(const std::string& names, uint32_t& into_ms, const std::string& help);
  // The arguments that are not options; `-` alone is one.
  Arguments& Positionals(const std::string& name, std::vector<std::string>& into, int at_least, int at_most,
                         const std::string& help);
  // The same of a command that has commands of its own: the first argument is one of `choices`, and a mistake
  // names them.
  Arguments& Words(std::vector<std::string>& into, std::vector<std::string> choices, int at_most,
                   const std::string& help);
  static constexpr int kAnyNumber = 1 << 24;

  // nullopt: go on. Otherwise the exit code, after --help or a mistake.
  std::optional<int> Parse(std::vector<std::string> args);

 private:
  struct Impl;
  // The mistake in the first of the words; empty: none.
  std::string WordMistake() const;

  Context& context_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace picket::cli
