#include "client/cli/commands.h"

#include <gtest/gtest.h>

namespace picket::cli {
namespace {

TEST(Commands, FoundInEitherSpelling) {
  for (const Command& command : Commands()) {
    EXPECT_EQ(FindCommand(command.name), &command);
    EXPECT_EQ(FindCommand("-" + std::string(command.name)), &command);
    EXPECT_NE(command.run, nullptr);
    EXPECT_FALSE(command.summary.empty());
  }
  EXPECT_EQ(FindCommand("-copyFromLocal"), FindCommand("put"));
  EXPECT_EQ(FindCommand("--help"), FindCommand("help"));
  EXPECT_EQ(FindCommand("nonsense"), nullptr);
  EXPECT_EQ(FindCommand("-"), nullptr);
}

TEST(Commands, NearestOfAMisspelling) {
  EXPECT_EQ(NearestCommand("sl"), "ls");
  EXPECT_EQ(NearestCommand("-mkdri"), "mkdir");
  EXPECT_EQ(NearestCommand("chekcsum"), "checksum");
  EXPECT_EQ(NearestCommand("frobnicate"), "");
}

}  // namespace
}  // namespace picket::cli
