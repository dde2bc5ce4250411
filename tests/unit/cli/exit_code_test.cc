#include "client/cli/exit_code.h"

#include <gtest/gtest.h>

namespace picket::cli {
namespace {

TEST(Outcome, SaysWhatBecameOfAllItems) {
  EXPECT_EQ(Outcome().exit_code(), kExitOk);

  Outcome done;
  done.Succeeded();
  EXPECT_EQ(done.exit_code(), kExitOk);

  Outcome failed;
  failed.Failed(kExitNotFound);
  failed.Failed(kExitNotFound);
  EXPECT_EQ(failed.exit_code(), kExitNotFound);
  failed.Failed(kExitConflict);
  EXPECT_EQ(failed.exit_code(), kExitFailure);  // no common reason

  Outcome mixed;
  mixed.Succeeded();
  mixed.Failed(kExitNotFound);
  EXPECT_EQ(mixed.exit_code(), kExitPartial);

  Outcome skipped;
  skipped.Succeeded();
  skipped.Skipped();
  EXPECT_EQ(skipped.exit_code(), kExitPartial);
}

TEST(ExitCode, OfEachKind) {
  using enum client::ErrorKind;
  EXPECT_EQ(ExitCodeOf(kInvalidArgument), 2);
  EXPECT_EQ(ExitCodeOf(kNotFound), 3);
  EXPECT_EQ(ExitCodeOf(kPermissionDenied), 4);
  EXPECT_EQ(ExitCodeOf(kFenced), 5);
  EXPECT_EQ(ExitCodeOf(kUnavailable), 6);
  EXPECT_EQ(ExitCodeOf(kTimeout), 6);
  EXPECT_EQ(ExitCodeOf(kCorrupt), 7);
  for (auto kind : {kAlreadyExists, kNotEmpty, kConflict, kLeaseHeld}) EXPECT_EQ(ExitCodeOf(kind), 9);
  for (auto kind : {kNotDirectory, kIsDirectory, kNoSpace, kUnsupported, kInternal}) EXPECT_EQ(ExitCodeOf(kind), 1);
}

}  // namespace
}  // namespace picket::cli
