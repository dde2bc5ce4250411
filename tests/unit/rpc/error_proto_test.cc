#include "common/rpc/error_proto.h"

#include <gtest/gtest.h>

namespace picket {
namespace {

Error RoundTrip(const Error& e) {
  proto::Error wire;
  ToProto(e, &wire);
  proto::Error read;
  EXPECT_TRUE(read.ParseFromString(wire.SerializeAsString()));
  return FromProto(read);
}

TEST(ErrorProto, EveryCodeComesBack) {
  for (uint32_t c = 1; c <= UINT16_MAX; ++c) {
    const auto code = static_cast<Code>(c);
    if (CodeName(code) == "UNKNOWN") continue;
    EXPECT_EQ(RoundTrip(Error(code, "m")).code, code);
  }
}

TEST(ErrorProto, EveryFieldComesBack) {
  Error e = Error(Code::kLeaseConflict, "m").WithTokens(UINT64_MAX, 2).WithHolder("h").WithNextStep("n");
  e.server = 3;
  e.retry_after_ms = 4;
  const Error r = RoundTrip(e);
  EXPECT_EQ(r.ToString(), e.ToString());
  EXPECT_EQ(r.server, 3u);
  EXPECT_EQ(r.retry_after_ms, 4u);
}

// An error must never turn into success on its way.
TEST(ErrorProto, UnknownCodesBecomeInternal) {
  for (const uint32_t code : {0u, 999u, 65535u, 65536u + 3u}) {
    proto::Error wire;
    wire.set_code(code);
    wire.set_message("m");
    const Error e = FromProto(wire);
    EXPECT_EQ(e.code, Code::kInternal) << code;
    EXPECT_NE(e.message.find(std::to_string(code)), std::string::npos);
  }
}

}  // namespace
}  // namespace picket
