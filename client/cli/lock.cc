// The command runs only while the lock is certain to be held: it is told to stop, and then killed, early
// enough to have ended before others may have the lock. Its exit code is the command's; kExitFenced when the
// lock was lost, kExitConflict when others hold it.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "client/cli/arguments.h"
#include "client/cli/child.h"
#include "client/cli/commands.h"
#include "client/cli/remote_path.h"
#include "client/cli/text.h"

namespace picket::cli {
namespace {

using client::Client;
using client::Lock;
using client::LockOptions;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLook{100};        // how often the lock's life is looked at
constexpr milliseconds kAttempt{500};     // a signal is noticed that soon while others hold the lock
constexpr milliseconds kLongestGrace{5000};
constexpr int kExitNotExecutable = 126;
constexpr int kExitNoCommand = 127;

// Null: not taken, which has been reported, or *signal has come first.
std::unique_ptr<Lock> Take(Context& context, Client& client, const std::string& path, const LockOptions& wanted,
                           HeldSignals& signals, int* signal) {
  const auto end = steady_clock::now() + milliseconds(wanted.wait_ms);
  while (true) {
    LockOptions attempt = wanted;
    const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now());
    attempt.wait_ms = static_cast<uint32_t>(std::clamp(left, milliseconds(0), kAttempt).count());
    auto lock = client.TakeLock(path, attempt);
    if (lock) return std::move(*lock);
    bool from_terminal = false;
    *signal = signals.Take(&from_terminal);
    if (*signal != 0) return nullptr;
    if (lock.error().kind == client::ErrorKind::kLeaseHeld && steady_clock::now() < end) continue;
    context.Fail(path, lock.error());
    return nullptr;
  }
}

struct Ending {
  int code = 0;
  bool lost = false;
};

Ending RunUnder(Lock& lock, Child& child, HeldSignals& signals) {
  const milliseconds grace = std::min<milliseconds>(kLongestGrace, milliseconds(lock.left_ms() / 4));
  std::optional<steady_clock::time_point> kill_at;
  while (true) {
    const Child::Wait waited = child.Await(signals, kLook);
    const milliseconds left(lock.left_ms());
    if (waited == Child::Wait::kEnded) return {child.Reap(), kill_at.has_value() || left.count() == 0};
    if (waited == Child::Wait::kSignal) {
      bool from_terminal = false;
      const int signal = signals.Take(&from_terminal);
      if (signal != 0 && !from_terminal) child.Signal(signal);
    }
    if (!kill_at && left <= grace) {
      kill_at = steady_clock::now() + grace;
      child.Signal(SIGTERM);
    } else if (kill_at && steady_clock::now() >= *kill_at) {
      child.Signal(SIGKILL);
      return {child.Reap(), true};
    }
  }
}

}  // namespace

int RunLock(Context& context, const std::vector<std::string>& args) {
  const auto dashes = std::find(args.begin(), args.end(), "--");
  const std::vector<std::string> own(args.begin(), dashes);
  const std::vector<std::string> command(dashes == args.end() ? dashes : dashes + 1, args.end());
  LockOptions options;
  std::vector<std::string> paths;
  Arguments arguments(context);
  arguments.Flag("--shared", options.shared, "Others may hold it too, with --shared; nobody without")
      .Duration("--wait", options.wait_ms, "Wait so long for the lock; else fail at once when others hold it")
      .Text("--writer-id", options.writer_id, "ID",
            "Who takes it, over restarts: takes over at once what the same ID holds")
      .Duration("--ttl", options.ttl_ms, "Others may take it when it was not renewed for so long (the cluster's soft limit)")
      .Duration("--lock-delay", options.lock_delay_ms,
                "Keep others out so long when it ends without a release (the cluster's)")
      .Positionals("path", paths, 1, 1, "The file that is locked; made if it is missing");
  if (auto code = arguments.Parse(own)) return *code;
  if (command.empty()) return context.UsageError("a command is required: picket lock PATH -- COMMAND...");

  // Before any thread is started, so that all of them leave the signals alone.
  HeldSignals signals;
  Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  const std::string path = ResolvePath(paths[0], client->user());
  int signal = 0;
  const std::unique_ptr<Lock> lock = Take(context, *client, path, options, signals, &signal);
  if (signal != 0) return 128 + signal;
  if (!lock) return context.Finish();
  context.Note(fmt::format("{} is locked under generation {}", path, TokenText(lock->generation())));

  auto child = Child::Start(command, {{"PICKET_SEQUENCER", lock->sequencer()},
                                      {"PICKET_LOCK_PATH", path},
                                      {"PICKET_LOCK_GENERATION", TokenText(lock->generation())}});
  Ending ending;
  if (child) {
    ending = RunUnder(*lock, *child, signals);
  } else {
    const int why = child.error();
    context.Fail(command[0], kExitFailure, std::strerror(why));
    ending.code = why == ENOENT ? kExitNoCommand : kExitNotExecutable;
  }
  auto released = lock->Release();
  if (ending.lost) {
    const auto lost = lock->lost();
    if (lost) {
      context.Fail(path, *lost);
    } else {
      context.Fail(path, kExitFenced, "the lock could not be renewed, and the command was stopped before it ended");
    }
    return kExitFenced;
  }
  if (!released) context.Warn(path, "the lock was not released: " + released.error().ToString());
  return ending.code;
}

}  // namespace picket::cli
