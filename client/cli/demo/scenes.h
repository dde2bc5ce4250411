// The scenes, in the order in which they are played. Each tells what happens and fails as soon as something does
// not go as told.
#pragma once

#include "client/cli/demo/raw_writer.h"
#include "client/cli/demo/stage.h"
#include "client/cli/demo/story.h"

namespace picket::cli::demo {

struct Play {
  Stage& stage;
  Story& story;
  RawWriter writer;  // from the second scene on
  proto::Hop old_primary = {};
  proto::WriteToken old_token = {};
};

Status PlayPausedWriter(Play& play);
Status PlayRetries(Play& play);
Status PlayOldPrimary(Play& play);
Status PlayOldReplica(Play& play);
Status PlayOldMaster(Play& play);
Status PlayVolatileGrantor(Play& play);

// Whole content, as any reader gets it.
Result<std::string> ReadFile(Stage& stage, const std::string& path);
// The refusal is told, if it is the one that the story has; else the scene breaks.
Status ExpectRefusal(Story& story, std::string_view who, std::string_view where, const Status& answer, Code code);

}  // namespace picket::cli::demo
