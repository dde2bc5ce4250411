// What the verbs make of command lines that make no sense: kExitUsage and one line that says what is wanted,
// before any cluster is asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "client/cli/commands.h"
#include "client/cli/context.h"
#include "client/cli/exit_code.h"

namespace picket::cli {
namespace {

using testing::HasSubstr;

struct Mistake {
  const char* command;
  std::vector<std::string> args;
  const char* said;
};

class ArgumentsTest : public testing::TestWithParam<Mistake> {};

TEST_P(ArgumentsTest, AMistakeIsOneLineThatSaysWhatIsWanted) {
  const Mistake& mistake = GetParam();
  const Command* command = FindCommand(mistake.command);
  ASSERT_NE(command, nullptr);
  testing::internal::CaptureStderr();
  int code = 0;
  {
    Context context(*command, GlobalOptions{.master = "127.0.0.1:1"});
    code = command->run(context, mistake.args);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(code, kExitUsage) << said;
  EXPECT_THAT(said, HasSubstr(mistake.said));
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << said;
}

INSTANTIATE_TEST_SUITE_P(
    Verbs, ArgumentsTest,
    testing::Values(
        Mistake{"appendToFile", {}, "too few arguments; wanted: "}, Mistake{"write", {}, "too few arguments"},
        Mistake{"write", {"a", "b", "c"}, "too many arguments"},
        Mistake{"write", {"--offset", "-1", "a", "/b"}, "\"-1\" is not an offset"},
        Mistake{"write", {"--offset=99999999999999999999", "a", "/b"}, "is not an offset"},
        Mistake{"write", {"--if-revision", "x", "a", "/b"}, "\"x\" is not a number"},
        Mistake{"put", {"--if-version", "-1", "a", "/b"}, "\"-1\" is not a number"},
        Mistake{"truncate", {}, "too few arguments"}, Mistake{"truncate", {"-1", "/a"}, "\"-1\" is not a length"},
        Mistake{"truncate", {"99999999999999999999", "/a"}, "is not a length"},
        Mistake{"concat", {"/a"}, "too few arguments"}, Mistake{"records", {}, "one of append, cat"},
        Mistake{"records", {"append"}, "a path is required"},
        Mistake{"records", {"append", "--raw", "/a"}, "--raw does not say"},
        Mistake{"records", {"cat", "--sync", "/a"}, "are of append"},
        Mistake{"lease", {"steal", "/a"}, "\"steal\" is not known"}, Mistake{"lease", {"recover"}, "a path is required"},
        Mistake{"sequencer", {"check"}, "a sequencer is required"},
        Mistake{"quarantine", {"restore", "1"}, "the name of a replica is required"},
        Mistake{"lock", {"/a"}, "a command is required"}, Mistake{"lock", {"--", "true"}, "too few arguments"},
        Mistake{"lock", {"--ttl", "-3s", "/a", "--", "true"}, "\"-3s\" is not a time"},
        Mistake{"admin", {"adapt"}, "\"adapt\" is not known"}, Mistake{"mv", {"/a"}, "too few arguments"},
        Mistake{"help", {"a", "b"}, "too many arguments"}, Mistake{"dev", {}, "is required"}));

}  // namespace
}  // namespace picket::cli
