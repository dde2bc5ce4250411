#include "client/cli/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>

#include "client/cli/commands.h"
#include "client/cli/text.h"
#include "common/obs/units.h"

namespace picket::cli {
namespace {

// One dash and a long name, as hdfs spells them; CLI11 would read a bundle of short flags.
constexpr std::pair<std::string_view, std::string_view> kHdfsSpellings[] = {
    {"-skipTrash", "--skip-trash"},
    {"-help", "--help"},
    {"-report", "report"},
};

// CLI11 takes "[a,b]" for a list of two; a byte in front of the bracket prevents it.
constexpr char kGuard = '\x01';

void Guard(std::string* arg) {
  if (arg->starts_with('[')) arg->insert(arg->begin(), kGuard);
}
void Unguard(std::string* value) {
  if (value->starts_with(kGuard)) value->erase(value->begin());
}

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::string usage) : usage_(std::move(usage)) {}
  std::string make_usage(const CLI::App*, std::string) const override { return usage_; }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_positional() ? "" : CLI::Formatter::make_option_opts(option);
  }

 private:
  std::string usage_;
};

}  // namespace

struct Arguments::Impl {
  CLI::App app;
  std::vector<std::string*> texts;
  std::vector<std::vector<std::string>*> lists;
  std::string positionals;  // their name, for the parser
  std::string wanted;       // what they are, for the user
  std::vector<std::string>* words = nullptr;
  std::vector<std::string> choices;
};

Arguments::Arguments(Context& context) : context_(context), impl_(std::make_unique<Impl>()) {
  CLI::App& app = impl_->app;
  app.name(fmt::format("picket {}", context.command.name));
  app.description(std::string(context.command.summary));
  app.formatter(std::make_shared<HelpFormatter>(
      fmt::format("Usage: picket {} {}\n", context.command.name, context.command.synopsis)));
  app.set_help_flag("--help", "Print this text");
  app.add_option("--master", context.options.master, "Address of the master")->type_name("HOST:PORT")->group("Global");
  app.add_option("--config", context.options.config, "Configuration file of the client")
      ->type_name("FILE")
      ->group("Global");
  app.add_flag("--json", context.options.json, "Print facts as one JSON document")->group("Global");
  app.add_flag("-v,--verbose", context.options.verbose, "Say more on standard error")->group("Global");
}

Arguments::~Arguments() = default;

Arguments& Arguments::Flag(const std::string& names, bool& into, const std::string& help) {
  impl_->app.add_flag(names, into, help);
  return *this;
}

Arguments& Arguments::Text(const std::string& names, std::string& into, const std::string& metavar,
                           const std::string& help) {
  impl_->app.add_option(names, into, help)->type_name(metavar);
  impl_->texts.push_back(&into);
  return *this;
}

Arguments& Arguments::Texts(const std::string& names, std::vector<std::string>& into, const std::string& metavar,
                            const std::string& help) {
  impl_->app.add_option(names, into, help)->type_name(metavar)->allow_extra_args(false);
  impl_->lists.push_back(&into);
  return *this;
}

Arguments& Arguments::Number(const std::string& names, uint32_t& into, uint32_t min, uint32_t max,
                             const std::string& help) {
  impl_->app.add_option(names, into, help)->type_name("N")->check(CLI::Range(min, max).description(""));
  return *this;
}

Arguments& Arguments::Bytes(const std::string& names, uint64_t& into, const std::string& help) {
  auto parse = [&into](const std::string& text) {
    const auto bytes = ParseBytes(text);
    if (!bytes) throw CLI::ValidationError(fmt::format("\"{}\" is not a size such as 64M", text));
    into = *bytes;
  };
  impl_->app.add_option_function<std::string>(names, parse, help)->type_name("SIZE");
  return *this;
}

Arguments& Arguments::Number(const std::string& names, std::optional<uint64_t>& into, const std::string& help) {
  auto parse = [&into](const std::string& text) {
    uint64_t value = 0;
    const char* const end = text.data() + text.size();
    // Digits only: CLI11 would take "-1" for the largest number.
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end) throw CLI::ValidationError(fmt::format("\"{}\" is not a number", text));
    into = value;
  };
  impl_->app.add_option_function<std::string>(names, parse, help)->type_name("N");
  return *this;
}

Arguments& Arguments::Bytes(const std::string& names, std::optional<uint64_t>& into, const std::string& help) {
  auto parse = [&into](const std::string& text) {
    into = ParseBytes(text);
    if (!into) throw CLI::ValidationError(fmt::format("\"{}\" is not a size such as 64M", text));
  };
  impl_->app.add_option_function<std::string>(names, parse, help)->type_name("SIZE");
  return *this;
}

Arguments& Arguments::Duration(const std::string& names, uint32_t& into_ms, const std::string& help) {
  auto parse = [&into_ms](const std::string& text) {
    const auto duration = ParseDuration(text);
    const int64_t ms = duration ? *duration / std::chrono::milliseconds(1) : 0;
    if (ms < 1 || ms > UINT32_MAX) throw CLI::ValidationError(fmt::format("\"{}\" is not a time such as 60s", text));
    into_ms = static_cast<uint32_t>(ms);
  };
  impl_->app.add_option_function<std::string>(names, parse, help)->type_name("TIME");
  return *this;
}

Arguments& Arguments::Words(std::vector<std::string>& into, std::vector<std::string> choices, int at_most,
                            const std::string& help) {
  impl_->words = &into;
  impl_->choices = std::move(choices);
  return Positionals("words", into, 0, at_most, help);
}

std::string Arguments::WordMistake() const {
  if (impl_->words == nullptr) return "";
  const std::string choices = fmt::format("{}", fmt::join(impl_->choices, ", "));
  if (impl_->words->empty()) {
    return impl_->choices.size() == 1 ? fmt::format("{} is required", choices)
                                      : fmt::format("one of {} is required", choices);
  }
  const std::string& word = impl_->words->front();
  if (std::ranges::find(impl_->choices, word) != impl_->choices.end()) return "";
  return fmt::format("\"{}\" is not known; it can be: {}", word, choices);
}

Arguments& Arguments::Positionals(const std::string& name, std::vector<std::string>& into, int at_least, int at_most,
                                  const std::string& help) {
  auto* option = impl_->app.add_option(name, into, help)->type_name("");
  option->expected(std::max(at_least, 1), at_most);
  impl_->positionals = name;
  impl_->wanted = help;
  impl_->lists.push_back(&into);
  if (at_least > 0) option->required();
  return *this;
}

std::optional<int> Arguments::Parse(std::vector<std::string> args) {
  for (std::string& arg : args) Guard(&arg);
  for (std::string& arg : args) {
    if (arg == "--") break;
    for (const auto& [hdfs, ours] : kHdfsSpellings) {
      if (arg == hdfs) arg = ours;
    }
  }
  std::reverse(args.begin(), args.end());
  try {
    impl_->app.parse(std::move(args));
  } catch (const CLI::CallForHelp&) {
    context_.out.Write(impl_->app.help());
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    std::string text = error.what();
    // The parser would say "paths is required".
    if (!impl_->positionals.empty() && text.starts_with(impl_->positionals)) {
      const bool many = text.find("At Most") != std::string::npos;
      return context_.UsageError(fmt::format("too {} arguments; wanted: {}", many ? "many" : "few", impl_->wanted));
    }
    std::replace(text.begin(), text.end(), '\n', ' ');
    return context_.UsageError(text);
  }
  for (std::string* text : impl_->texts) Unguard(text);
  for (std::vector<std::string>* list : impl_->lists) {
    for (std::string& text : *list) Unguard(&text);
  }
  if (const std::string mistake = WordMistake(); !mistake.empty()) return context_.UsageError(mistake);
  return std::nullopt;
}

}  // namespace picket::cli
