#include "common/obs/nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace picket {
namespace {

TEST(Nearest, EditDistance) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("abc", ""), 3u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(EditDistance("listen", "lisetn"), 1u);  // a swap is one edit
  EXPECT_EQ(EditDistance("ab", "ba"), 1u);
}

TEST(Nearest, FindsWhatWasMeant) {
  const std::vector<std::string> known = {"listen", "advertise", "chunk_size", "ls", "rm", "put"};
  EXPECT_EQ(NearestName("lisen", known), "listen");
  EXPECT_EQ(NearestName("chunksize", known), "chunk_size");
  EXPECT_EQ(NearestName("chunk-size", known), "chunk_size");
  EXPECT_EQ(NearestName("pt", known), "put");
  EXPECT_EQ(NearestName("sl", known), "ls");
  EXPECT_EQ(DidYouMean("advertize", known), "; did you mean advertise?");
}

TEST(Nearest, SaysNothingRatherThanNonsense) {
  const std::vector<std::string> known = {"listen", "ls", "rm"};
  EXPECT_EQ(NearestName("replication", known), "");
  EXPECT_EQ(NearestName("xy", known), "");
  EXPECT_EQ(NearestName("", known), "");
  EXPECT_EQ(NearestName(std::string(1000, 'l'), known), "");
  EXPECT_EQ(NearestName("ls", {}), "");
  EXPECT_EQ(DidYouMean("replication", known), "");
}

}  // namespace
}  // namespace picket
