#include <fmt/format.h>
#include <fmt/ranges.h>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/facts.h"
#include "client/cli/remote_path.h"
#include "client/cli/table.h"
#include "client/cli/text.h"

namespace picket::cli {
namespace {

using client::Client;
using client::LeaseHolder;
using client::LeaseInfo;

std::string Seconds(int64_t ms) { return fmt::format("{:.1f} s", static_cast<double>(ms) / 1000.0); }

std::string LeftText(int64_t ms) { return ms <= 0 ? fmt::format("over for {}", Seconds(-ms)) : Seconds(ms); }

std::string HolderText(const Output& out, const LeaseHolder& holder) {
  return holder.writer_id.empty() ? holder.client
                                  : fmt::format("{} (writer {})", holder.client, out.Name(holder.writer_id));
}

std::string HoldersText(const Output& out, const LeaseInfo& lease) {
  std::vector<std::string> holders;
  for (const LeaseHolder& holder : lease.holders) holders.push_back(HolderText(out, holder));
  return holders.empty() ? "-" : fmt::format("{}", fmt::join(holders, ", "));
}

std::string ModeText(const LeaseInfo& lease) {
  return lease.lock && lease.mode == "exclusive" ? "exclusive_lock" : lease.mode;
}

void List(Context& context, Client& client, const std::string& under) {
  const auto leases = client.Leases(under);
  if (!leases) return context.Fail(under, leases.error());
  if (context.options.json) {
    Json list = Json::array();
    for (const LeaseInfo& lease : *leases) list.push_back(FactsOf(lease));
    context.out.PrintJson({{"leases", std::move(list)}});
    return;
  }
  using enum Table::Align;
  Table table({{"MODE"}, {"GENERATION", kRight}, {"SOFT LEFT", kRight}, {"HARD LEFT", kRight}, {"HOLDER"}, {"PATH"}});
  for (const LeaseInfo& lease : *leases) {
    std::string path = context.out.Name(lease.path);
    if (lease.pending) path += " (replaced at close)";
    table.Add({ModeText(lease), TokenText(lease.generation), LeftText(lease.soft_left_ms), LeftText(lease.hard_left_ms),
               lease.recovering ? fmt::format("recovery: {}", lease.phase) : HoldersText(context.out, lease),
               std::move(path)});
  }
  if (!leases->empty()) context.out.Write(table.Render());
}

void PrintRecovery(Output& out, const LeaseInfo& lease) {
  out.Print("  recovery {} (the {}. try) at version {}: {}; it began: {}\n", TokenText(lease.attempt),
            lease.attempts, TokenText(lease.recovery_version), lease.phase, out.Name(lease.reason));
  if (!lease.stalled_holder.empty()) out.Print("  stalled holder: {}\n", lease.stalled_holder);
  out.Print("  waits for: {}\n", lease.waiting_for.empty() ? "nobody" : out.Name(lease.waiting_for));
  if (lease.answers.empty()) return;
  using enum Table::Align;
  Table table({{"SERVER"}, {"ANSWER"}, {"VERSION", kRight}, {"BYTES", kRight}, {"STATE"}, {""}});
  for (const client::RecoveryAnswer& answer : lease.answers) {
    const bool answered = answer.state == "answered";
    table.Add({answer.server, answer.state, answered ? TokenText(answer.version) : "-",
               answered ? fmt::format("{}", answer.length) : "-",
               !answered       ? "-"
               : answer.sealed ? fmt::format("sealed by {}", TokenText(answer.sealed_generation))
               : answer.clean  ? "open"
                               : "open, unclean",
               out.Name(answer.error)});
  }
  out.Write(table.Render(2));
}

void Show(Context& context, Client& client, const std::string& path) {
  const auto state = client.ShowLease(path);
  if (!state) return context.Fail(path, state.error());
  if (context.options.json) {
    context.out.PrintJson({{"path", path},
                           {"open", state->open},
                           {"lease", state->open ? FactsOf(state->lease) : Json()},
                           {"lock_delay_left_ms", state->lock_delay_left_ms},
                           {"generation", state->status.generation}});
    return;
  }
  Output& out = context.out;
  if (!state->open) {
    out.Print("{}: nobody is writing it; its last generation is {}\n", out.Name(path),
              TokenText(state->status.generation));
    if (state->lock_delay_left_ms > 0) {
      out.Print("  its lock was not released: others are kept out for another {}\n", Seconds(state->lock_delay_left_ms));
    }
    return;
  }
  const LeaseInfo& lease = state->lease;
  out.Print("{}: {}, generation {}\n", out.Name(path), ModeText(lease), TokenText(lease.generation));
  for (const LeaseHolder& holder : lease.holders) {
    out.Print("  holder {}, renewed {} ago\n", HolderText(out, holder), Seconds(holder.renewed_ms_ago));
  }
  out.Print("  soft limit {}: {}\n", Seconds(lease.soft_limit_ms),
            lease.soft_left_ms <= 0 ? "over, others may claim the file"
                                    : fmt::format("others may claim the file in {}", Seconds(lease.soft_left_ms)));
  out.Print("  hard limit {}: {}\n", Seconds(lease.hard_limit_ms),
            lease.hard_left_ms <= 0 ? "over, the master closes the file"
                                    : fmt::format("the master closes the file in {}", Seconds(lease.hard_left_ms)));
  if (lease.open_chunk != 0) out.Print("  open chunk {}\n", HexId(lease.open_chunk));
  if (lease.recovering) {
    PrintRecovery(out, lease);
  } else {
    out.Write("  no recovery is under way\n");
  }
}

void Recover(Context& context, Client& client, const std::string& path, bool wait) {
  const auto recovered = client.RecoverLease(path, wait);
  if (!recovered) return context.Fail(path, recovered.error());
  context.Succeed();
  if (context.options.json) {
    context.out.PrintJson({{"path", path},
                           {"closed", recovered->closed},
                           {"generation", recovered->generation},
                           {"length", recovered->status.length}});
  } else if (recovered->closed) {
    context.out.Print("{} is closed at {} bytes\n", context.out.Name(path), recovered->status.length);
  } else {
    context.out.Print("{}: its old writer is fenced by generation {}; see how far it is: picket lease show {}\n",
                      context.out.Name(path), TokenText(recovered->generation), context.out.Name(path));
  }
}

}  // namespace

int RunLease(Context& context, const std::vector<std::string>& args) {
  std::string under;
  bool wait = false;
  std::vector<std::string> words;
  Arguments arguments(context);
  arguments.Text("--path", under, "PATH", "With ls: only this file, or what is in this directory")
      .Flag("--wait", wait, "With recover: until the file is closed, not only its old writer fenced")
      .Words(words, {"ls", "show", "recover"}, Arguments::kAnyNumber, "ls; show or recover, then files");
  if (auto code = arguments.Parse(args)) return *code;
  const std::string verb = words.front();
  words.erase(words.begin());
  if (verb == "ls" && !words.empty()) return context.UsageError("ls: a path is given with --path");
  if (verb != "ls" && words.empty()) return context.UsageError(fmt::format("{}: a path is required", verb));
  if (verb == "show" && words.size() > 1 && context.options.json) {
    return context.UsageError("show --json: one path at a time");
  }
  Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  if (verb == "ls") List(context, *client, under.empty() ? "" : ResolvePath(under, client->user()));
  for (const std::string& word : words) {
    const std::string path = ResolvePath(word, client->user());
    if (verb == "show") {
      Show(context, *client, path);
    } else {
      Recover(context, *client, path, wait);
    }
  }
  return context.Finish();
}

}  // namespace picket::cli
