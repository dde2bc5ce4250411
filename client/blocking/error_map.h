// The protocol's errors as the public library's. Pure.
#pragma once

#include "common/base/error.h"
#include "picket/status.h"

namespace picket::client {

ErrorKind KindOf(Code code);
Error Public(const picket::Error& error);

// Passes a value through, an error as its public form.
inline std::unexpected<Error> PublicFailure(const picket::Error& error) { return std::unexpected<Error>(Public(error)); }

}  // namespace picket::client
