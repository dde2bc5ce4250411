// Who may have a file's write session: the judge of OPEN_FILE and TRUNCATE. Pure.
//
//   nobody holds it                                    → free
//   the master is recovering it                        → await its end
//   the same shared mode                               → join: another holder under the same generation
//   every holder is the asker's own logical writer     → take over, at once
//   nobody has renewed it for the soft limit           → take over (a claim)
//   else                                               → LEASE_CONFLICT
//
// In a shared session a writer that comes back takes the place of its old self among the holders; the
// generation stays, or every other holder would be fenced with it.
#pragma once

#include <string>

#include "common/base/error.h"
#include "common/env/env.h"
#include "master/path.h"
#include "master/session_table.h"

namespace picket {

struct Claim {
  enum class Way { kFree, kJoin, kTakeOver, kAwait };
  Way way = Way::kFree;
  std::string reason;        // of a take-over
  bool own_writer = false;   // it takes over from itself
};
// `session`: the one that is open, or nullptr. kLeaseConflict with holder, generation (mark), the time that
// is left and the next step.
Result<Claim> JudgeClaim(const Path& path, const SessionTable::Session* session, const SessionTable::Spec& spec, Mono now);

}  // namespace picket
