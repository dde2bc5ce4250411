#include "client/core/write_failure.h"

namespace picket {

WriteFailure JudgeWriteFailure(const Error& error, ServerId primary, bool repeated) {
  const ServerId named(error.server);
  switch (error.code) {
    case Code::kCorrupt:
      if (!named && !repeated) return {WriteVerdict::kAskAgain, {}};
      return {WriteVerdict::kBlame, named ? named : primary};
    case Code::kIoError:
    case Code::kNoSpace:
    case Code::kReadOnly:
      return {WriteVerdict::kBlame, named ? named : primary};
    case Code::kDeadlineExceeded:
      // The primary names the hop that was silent. Without a name it may be any of them, and to name
      // the wrong one takes a good member out of the set.
      if (named) return {WriteVerdict::kBlame, named};
      return {WriteVerdict::kProbe, {}};
    case Code::kUnavailable:
    case Code::kConnectionLost:
    case Code::kNotFound:
    case Code::kShort:
    case Code::kInternal:
    case Code::kStaleVersion:
    case Code::kReplicaBehind:
    case Code::kReplicaUnclean:
    case Code::kNotPrimary:
    case Code::kTokenExpired:
    case Code::kOutOfOrder:
    case Code::kSuperseded:
      return {WriteVerdict::kAskAgain, {}};
    default:
      return {WriteVerdict::kFinal, {}};
  }
}

bool NeedsNewToken(Code code) {
  return code == Code::kStaleVersion || (code >= Code::kReplicaBehind && code <= Code::kSuperseded);
}

bool LosesSession(Code code) { return IsFenced(code) || code == Code::kNotLeaseHolder; }

}  // namespace picket
