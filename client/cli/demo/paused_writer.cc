#include <fmt/format.h>

#include "client/cli/demo/scenes.h"
#include "client/cli/demo/writer_process.h"
#include "client/cli/text.h"

namespace picket::cli::demo {
namespace {

constexpr std::string_view kPath = "/demo/ledger";
constexpr std::string_view kOfA = "A: balance 100\n";
constexpr std::string_view kOfB = "B: balance 70\n";
constexpr std::string_view kLate = "A: balance 150\n";
constexpr double kClassicLeaseSeconds = 30;

Status AwaitContent(Stage& stage, const std::string& content) {
  return Until("the bytes can be read", [&] {
    const auto now = ReadFile(stage, std::string(kPath));
    return now && *now == content;
  });
}

Result<client::LeaseInfo> LeaseOf(Stage& stage) {
  auto lease = stage.client().ShowLease(kPath);
  if (!lease) return Fail(Of(lease.error()));
  if (!lease->open || lease->lease.holders.empty()) return Fail(NotAsTold(fmt::format("nobody holds {}", kPath)));
  return lease->lease;
}

// B asks again and again: refused while A's lease runs, let in when A was silent for the soft limit.
Result<std::unique_ptr<client::Writer>> Claim(Play& play) {
  std::unique_ptr<client::Writer> writer;
  std::optional<Error> broke;
  bool told = false;
  PICKET_TRY(Until("B may claim the file", [&] {
    auto claimed = play.stage.client().Append(kPath);
    if (claimed) {
      writer = std::move(*claimed);
    } else if (claimed.error().kind != client::ErrorKind::kLeaseHeld) {
      broke = Of(claimed.error());
    } else if (!told) {
      play.story.Refused("B", "the master", claimed.error().code, claimed.error().ToString());
      told = true;
    }
    return writer != nullptr || broke.has_value();
  }));
  if (broke) return Fail(*broke);
  if (!told) return Fail(NotAsTold("B got the file while A's lease should have run"));
  return writer;
}

// Nobody asks the master before a packet that is already on the wire: the replicas judge it by themselves.
Status PlayLatePacket(Play& play) {
  Stage& stage = play.stage;
  RawWriter late(stage, "/demo/late");
  if (const auto created = late.Create(); !created) return Fail(created.error());
  PICKET_TRY(late.AddChunk());
  const proto::Hop primary = late.grant().chain(0);
  PICKET_TRY(late.Send(primary, late.grant().token(), {.serial = 1, .offset = 0, .bytes = "on time\n"}));
  const auto recovered = stage.client().RecoverLease(late.path(), /*wait=*/true);
  if (!recovered) return Fail(Of(recovered.error()));
  play.story.Tell(
      "Another file",
      fmt::format("has the same story, without a library that asks before it sends: its writer's next packet is on the "
                  "way while `picket lease recover {}` gives the file generation {}",
                  late.path(), TokenText(recovered->generation)));
  const Status answer = late.Send(primary, late.grant().token(), {.serial = 2, .offset = 8, .bytes = "late\n"});
  PICKET_TRY(ExpectRefusal(play.story, "The late packet",
                           fmt::format("its replica, {}", stage.NameOf(EndpointOf(primary))), answer,
                           Code::kStaleVersion));
  const auto content = ReadFile(stage, late.path());
  if (!content || *content != "on time\n") return Fail(NotAsTold("the late packet is in the file"));
  return {};
}

}  // namespace

Status PlayPausedWriter(Play& play) {
  Stage& stage = play.stage;
  Story& story = play.story;
  story.Begin("The paused writer");
  story.Explain(
      "A and B want to write one file, and its write lease says who may. A stops for longer than its lease (a garbage "
      "collection, a swapped-out process, a stopped virtual machine), wakes up, and still believes that it holds it. "
      "In the "
      "textbook the lease lasts 30 s and A wakes at t=31; here it lasts 3 s, so one second is ten of the book's.");

  if (auto made = stage.client().Mkdir("/demo", /*parents=*/true); !made) return Fail(Of(made.error()));
  auto a = WriterProcess::Start(stage.client_config(), std::string(kPath));
  if (!a) return Fail(a.error());
  PICKET_TRY((*a)->Feed(kOfA));
  PICKET_TRY(AwaitContent(stage, std::string(kOfA)));
  const auto first = LeaseOf(stage);
  if (!first) return Fail(first.error());
  story.Tell("A", fmt::format("holds {} under generation {} (client {}) and has written \"A: balance 100\"", kPath,
                              TokenText(first->generation), first->holders.front().client));
  (*a)->Pause();
  story.Tell("A", "stands still (SIGSTOP). It does not know.");
  PICKET_TRY((*a)->Feed(kLate));
  const auto read = ReadFile(stage, std::string(kPath));
  if (!read || *read != kOfA) return Fail(NotAsTold("a reader is held up by a stalled writer"));
  story.Tell("A reader", "is not held up: it reads all that A flushed");

  auto b = Claim(play);
  if (!b) return Fail(b.error());
  const auto second = LeaseOf(stage);
  if (!second) return Fail(second.error());
  if (second->generation <= first->generation) return Fail(NotAsTold("B's generation is not above A's"));
  const double book =
      static_cast<double>(story.elapsed().count()) * kClassicLeaseSeconds / static_cast<double>(kSoftLimit.count());
  story.Tell("B",
             fmt::format(
                 "claims the file after the soft limit and has it under generation {} (client {}); the book's t={:.0f}",
                 TokenText(second->generation), second->holders.front().client, book));
  story.Tell("Each replica", fmt::format("has a mark above {} on its disk by now, before B can write one byte",
                                         TokenText(first->generation)));
  if (auto wrote = (*b)->Write(kOfB); !wrote) return Fail(Of(wrote.error()));
  if (auto flushed = (*b)->Flush(); !flushed) return Fail(Of(flushed.error()));
  story.Tell("B", "writes \"B: balance 70\"");

  (*a)->Resume();
  story.Tell("A", fmt::format("goes on (SIGCONT), sure of generation {}, and writes \"A: balance 150\"",
                              TokenText(first->generation)));
  auto ended = (*a)->Finish();
  if (!ended) return Fail(ended.error());
  if (ended->errors.find("STALE_GENERATION") == std::string::npos || ended->exit_code != kExitFenced) {
    return Fail(
        NotAsTold(fmt::format("A should have been refused with STALE_GENERATION (exit code {}): exit code {}, {}",
                              static_cast<int>(kExitFenced), ended->exit_code, ended->errors)));
  }
  story.Refused("A", "the master", "STALE_GENERATION", ended->errors);
  if (auto closed = (*b)->Close(); !closed) return Fail(Of(closed.error()));
  PICKET_TRY(AwaitContent(stage, std::string(kOfA) + std::string(kOfB)));
  story.Tell("B", "closes the file: it holds A's first line and B's, and nothing of what A wrote late");

  auto again = WriterProcess::Start(stage.client_config(), std::string(kPath));
  if (!again) return Fail(again.error());
  PICKET_TRY((*again)->Feed("A: balance 120\n"));
  auto redone = (*again)->Finish();
  if (!redone) return Fail(redone.error());
  if (redone->exit_code != kExitOk) return Fail(NotAsTold("A's second attempt failed: " + redone->errors));
  const auto status = stage.client().Stat(kPath);
  if (!status) return Fail(Of(status.error()));
  PICKET_TRY(AwaitContent(stage, std::string(kOfA) + std::string(kOfB) + "A: balance 120\n"));
  story.Tell("A",
             fmt::format(
                 "does what it was told to: opens the file again, reads B's line, redoes its work, under generation {}",
                 TokenText(status->generation)));
  PICKET_TRY(PlayLatePacket(play));
  story.End("No clock and no timeout had to be right for this: the replicas remember the newest generation, on disk.");
  return {};
}

}  // namespace picket::cli::demo
