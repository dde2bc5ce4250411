// What a writer that lost its session is told: who has the file now, and what to do next.
#pragma once

#include <memory>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/env/env.h"

namespace picket {

class MasterClient;

inline constexpr Nanos kExplainTimeout = 2s;  // to ask who has the file now

// `error` with the session's generation, the file's present one, its holder and the next step, where the
// refusal does not say them. Asks the master at most once.
Task<Error> ExplainLoss(Env* env, std::shared_ptr<MasterClient> master, InodeId inode, Generation generation,
                        Error error);

}  // namespace picket
