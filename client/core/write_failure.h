// What a writer does after a packet or a seal failed (decision D18): which refusals are final, which
// send it back to the master, and which name a replica as failed. Pure.
//
// STALE_VERSION ends a token, not the session: an attempt of the master may have raised the replicas' marks
// and died with it before its commit. The master's answer to a GRANT says whether the writer still holds
// the file; STALE_GENERATION says that it does not.
#pragma once

#include "common/base/error.h"
#include "common/base/ids.h"

namespace picket {

enum class WriteVerdict {
  kFinal,     // stop: the session is dead, or the request can never succeed
  kAskAgain,  // a GRANT that names nobody: the replica said where it stands, or the line broke
  kBlame,     // a GRANT that names a server: a CRC or disk error there
  kProbe,     // nobody answered in time: the primary is named only if it is silent itself
};

struct WriteFailure {
  WriteVerdict verdict = WriteVerdict::kFinal;
  ServerId blamed;  // for kBlame
};

// `primary` answered `error`, or failed to. The server that failed is named by Error::server. Bytes that
// arrived damaged at the primary say nothing about who damaged them: it is named when that happens again
// (`repeated`: nothing was acknowledged since the last failure).
WriteFailure JudgeWriteFailure(const Error& error, ServerId primary, bool repeated);

// The request was in order, another one is needed: the next attempt gets it (D17).
bool NeedsNewToken(Code code);

// After it the master keeps no session of this writer.
bool LosesSession(Code code);

}  // namespace picket
