#include "client/blocking/error_map.h"

namespace picket::client {

ErrorKind KindOf(Code code) {
  switch (code) {
    case Code::kInvalidArgument: return ErrorKind::kInvalidArgument;
    case Code::kNotFound: return ErrorKind::kNotFound;
    case Code::kAlreadyExists: return ErrorKind::kAlreadyExists;
    case Code::kNotEmpty: return ErrorKind::kNotEmpty;
    case Code::kNotDirectory: return ErrorKind::kNotDirectory;
    case Code::kIsDirectory: return ErrorKind::kIsDirectory;
    case Code::kPermissionDenied:
    case Code::kTokenForged: return ErrorKind::kPermissionDenied;
    case Code::kConflict: return ErrorKind::kConflict;
    case Code::kUnsupported: return ErrorKind::kUnsupported;
    case Code::kUnavailable:
    case Code::kConnectionLost:
    case Code::kIoError:
    case Code::kReadOnly:
    case Code::kSafeMode:
    case Code::kReplicaBehind:
    case Code::kReplicaUnclean:
    case Code::kNotPrimary:
    case Code::kTokenExpired:
    case Code::kOutOfOrder:
    case Code::kSuperseded:
    case Code::kNotEnoughReplicas:
    case Code::kWaitingFor:
    case Code::kShort:
    case Code::kWrongCluster:
    case Code::kHistoryLost:
    case Code::kAheadOfMaster: return ErrorKind::kUnavailable;
    case Code::kDeadlineExceeded: return ErrorKind::kTimeout;
    case Code::kNoSpace: return ErrorKind::kNoSpace;
    case Code::kCorrupt:
    case Code::kIntegrity: return ErrorKind::kCorrupt;
    case Code::kStaleEpoch:
    case Code::kStaleVersion:
    case Code::kStaleGeneration:
    case Code::kNotLeaseHolder: return ErrorKind::kFenced;
    case Code::kLeaseConflict: return ErrorKind::kLeaseHeld;
    case Code::kOk:
    case Code::kInternal:
    case Code::kDedupWindowExceeded:
    case Code::kChunkFull: break;
    case Code::kLockDelayed: return client::ErrorKind::kLeaseHeld;
  }
  return ErrorKind::kInternal;
}

Error Public(const picket::Error& error) {
  Error out;
  out.kind = KindOf(error.code);
  out.code = CodeName(error.code);
  out.message = error.message;
  out.next_step = error.next_step;
  out.token = error.token;
  out.mark = error.mark;
  out.holder = error.holder;
  return out;
}

}  // namespace picket::client
