#include "client/cli/progress.h"

#include <gtest/gtest.h>

namespace picket::cli {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(ProgressLine, RateAndTimeLeft) {
  EXPECT_EQ(ProgressLine("file", 512 * kMiB, 1024 * kMiB, 128.0 * kMiB, 100),
            "file   50%  [====================>                   ]  512 MB / 1.0 GB  128 MB/s  4 s left");
}

TEST(ProgressLine, FitsTheTerminal) {
  for (int columns : {40, 60, 80, 200}) {
    const auto line = ProgressLine(std::string(100, 'n'), kMiB, 3 * kMiB, 0.5 * kMiB, columns);
    if (columns >= 80) EXPECT_LE(line.size(), static_cast<size_t>(columns));
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
}

TEST(ProgressLine, WithoutATotalOrARate) {
  EXPECT_EQ(ProgressLine("-", 3 * kMiB, 0, 1.0 * kMiB, 80), "-  3.0 MB  1.0 MB/s");
  EXPECT_NE(ProgressLine("x", 0, kMiB, 0, 80).find("- left"), std::string::npos);
  // A source that grew: never above 100 %.
  EXPECT_NE(ProgressLine("x", 2 * kMiB, kMiB, kMiB, 80).find("100%"), std::string::npos);
}

}  // namespace
}  // namespace picket::cli
