#include <memory>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/demo/scenes.h"
#include "client/cli/demo/stage.h"
#include "client/cli/demo/story.h"
#include "client/cli/interrupt.h"

namespace picket::cli {
namespace {

using namespace demo;

constexpr Status (*kScenes[])(Play&) = {PlayPausedWriter, PlayRetries,   PlayOldPrimary,
                                        PlayOldReplica,   PlayOldMaster, PlayVolatileGrantor};

// Each scene goes on from where the one before it ended: the first that breaks is the last one.
void PlayAll(Context& context, Stage& stage, bool keep) {
  Story story(context);
  Play play{.stage = stage, .story = story, .writer = RawWriter(stage, "/demo/packets")};
  for (const auto scene : kScenes) {
    if (Interrupted()) break;
    if (const Status played = scene(play); !played) {
      if (!Interrupted()) story.Broke(played.error());
      break;
    }
  }
  if (!Interrupted()) story.Print(stage.directory(), keep);
}

int PlayFencing(Context& context, bool keep) {
  // Everything is taken down again before this command ends.
  const Deferral deferral(Deferral::Patience::kAllSignals);
  if (!context.options.json) {
    context.out.Write(
        "Starting a cluster of our own: one master and three chunkservers, with limits short enough to wait for.\n");
    context.out.Flush();
  }
  auto stage = Stage::Build(keep, [&context](std::string_view line) { context.Note(line); });
  if (!stage) {
    if (!Interrupted()) context.Fail("", kExitFailure, stage.error().message);
    return context.Finish();
  }
  PlayAll(context, **stage, keep);
  const std::string directory = (*stage)->directory();
  stage->reset();
  if (keep && !context.options.json) {
    context.out.Print(
        "\nThe cluster is stopped; its logs and data are in {0}\n  picket dev up --dir {0}      starts it again\n"
        "  picket dev wipe --dir {0}    removes it\n",
        directory);
  }
  return context.Finish();
}

}  // namespace

int RunDemo(Context& context, const std::vector<std::string>& args) {
  bool keep = false;
  std::vector<std::string> words;
  Arguments arguments(context);
  arguments.Flag("--keep", keep, "Keep the cluster's directory, with its logs and data")
      .Words(words, {"fencing"}, 1, "fencing: how old writers, primaries, replicas and masters are refused");
  if (auto code = arguments.Parse(args)) return *code;
  return PlayFencing(context, keep);
}

}  // namespace picket::cli
