// picket::Error on the wire.
#pragma once

#include "common/base/error.h"
#include "proto/common.pb.h"

namespace picket {

void ToProto(const Error& from, proto::Error* to);
Error FromProto(const proto::Error& from);

}  // namespace picket
