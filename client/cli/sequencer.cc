#include <fmt/format.h>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/text.h"

namespace picket::cli {
namespace {

using client::Sequencer;
using client::SequencerState;
using client::Verdict;

Json FactsOf(const Sequencer& s) {
  return {{"cluster", s.cluster},       {"path", s.path},
          {"inode", HexId(s.inode)},    {"mode", s.shared ? "shared" : "exclusive"},
          {"generation", s.generation}, {"holder", s.holder},
          {"key", s.key}};
}

void PrintFacts(Output& out, const Sequencer& s) {
  out.Print("  {} lock of {}, generation {}, holder {}\n", s.shared ? "shared" : "exclusive", out.Name(s.path),
            TokenText(s.generation), s.holder);
  out.Print("  cluster {}, inode {}, key {}\n", s.cluster, HexId(s.inode), TokenText(s.key));
}

int ExitOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kValid: return kExitOk;
    case Verdict::kStale:
    case Verdict::kExpired: return kExitFenced;
    case Verdict::kForged: return kExitPermission;
  }
  return kExitFailure;
}

int Check(Context& context, const std::string& text, const std::string& server) {
  client::Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  const auto state = client->CheckSequencer(text, server);
  if (!state) {
    context.Fail("", state.error());
    return context.Finish();
  }
  Output& out = context.out;
  const std::string verdict(client::VerdictName(state->verdict));
  if (context.options.json) {
    out.PrintJson({{"verdict", verdict},
                   {"sequencer", state->sequencer ? FactsOf(*state->sequencer) : Json()},
                   {"newest_generation", state->newest_generation},
                   {"holder", state->holder},
                   {"detail", state->detail}});
    return ExitOf(state->verdict);
  }
  out.Print("{}{}{}\n", verdict, state->detail.empty() ? "" : ": ", out.Name(state->detail));
  if (state->sequencer) PrintFacts(out, *state->sequencer);
  if (state->verdict == Verdict::kStale && state->newest_generation != 0) {
    out.Print("  the newest generation is {}{}{}\n", TokenText(state->newest_generation),
              state->holder.empty() ? "" : ", held by ", state->holder);
  }
  return ExitOf(state->verdict);
}

int Show(Context& context, const std::string& text) {
  const auto sequencer = client::ReadSequencer(text);
  if (!sequencer) {
    context.Fail("", sequencer.error());
    return context.Finish();
  }
  if (context.options.json) {
    context.out.PrintJson(FactsOf(*sequencer));
  } else {
    context.out.Write("says of itself (ask `picket sequencer check` whether it is so):\n");
    PrintFacts(context.out, *sequencer);
  }
  return kExitOk;
}

}  // namespace

int RunSequencer(Context& context, const std::vector<std::string>& args) {
  std::string server;
  std::vector<std::string> words;
  Arguments arguments(context);
  arguments.Text("--server", server, "HOST:PORT", "With check: ask this chunkserver instead of the master")
      .Words(words, {"check", "show"}, 2, "check or show, then the sequencer");
  if (auto code = arguments.Parse(args)) return *code;
  if (words.size() != 2) return context.UsageError(fmt::format("{}: a sequencer is required", words[0]));
  return words[0] == "check" ? Check(context, words[1], server) : Show(context, words[1]);
}

}  // namespace picket::cli
