#include "common/base/error.h"

#include <cinttypes>
#include <cstdio>

namespace picket {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk: return "OK";
    case Code::kInvalidArgument: return "INVALID_ARGUMENT";
    case Code::kNotFound: return "NOT_FOUND";
    case Code::kAlreadyExists: return "ALREADY_EXISTS";
    case Code::kNotEmpty: return "NOT_EMPTY";
    case Code::kNotDirectory: return "NOT_DIRECTORY";
    case Code::kIsDirectory: return "IS_DIRECTORY";
    case Code::kPermissionDenied: return "PERMISSION_DENIED";
    case Code::kConflict: return "CONFLICT";
    case Code::kUnsupported: return "UNSUPPORTED";
    case Code::kUnavailable: return "UNAVAILABLE";
    case Code::kDeadlineExceeded: return "DEADLINE_EXCEEDED";
    case Code::kConnectionLost: return "CONNECTION_LOST";
    case Code::kNoSpace: return "NO_SPACE";
    case Code::kIoError: return "IO_ERROR";
    case Code::kCorrupt: return "CORRUPT";
    case Code::kIntegrity: return "INTEGRITY";
    case Code::kReadOnly: return "READ_ONLY";
    case Code::kSafeMode: return "SAFE_MODE";
    case Code::kInternal: return "INTERNAL";
    case Code::kStaleEpoch: return "STALE_EPOCH";
    case Code::kStaleVersion: return "STALE_VERSION";
    case Code::kStaleGeneration: return "STALE_GENERATION";
    case Code::kReplicaBehind: return "REPLICA_BEHIND";
    case Code::kReplicaUnclean: return "REPLICA_UNCLEAN";
    case Code::kNotPrimary: return "NOT_PRIMARY";
    case Code::kTokenExpired: return "TOKEN_EXPIRED";
    case Code::kOutOfOrder: return "OUT_OF_ORDER";
    case Code::kSuperseded: return "SUPERSEDED";
    case Code::kTokenForged: return "TOKEN_FORGED";
    case Code::kNotLeaseHolder: return "NOT_LEASE_HOLDER";
    case Code::kLeaseConflict: return "LEASE_CONFLICT";
    case Code::kNotEnoughReplicas: return "NOT_ENOUGH_REPLICAS";
    case Code::kWaitingFor: return "WAITING_FOR";
    case Code::kShort: return "SHORT";
    case Code::kDedupWindowExceeded: return "DEDUP_WINDOW_EXCEEDED";
    case Code::kChunkFull: return "CHUNK_FULL";
    case Code::kLockDelayed: return "LOCK_DELAYED";
    case Code::kWrongCluster: return "WRONG_CLUSTER";
    case Code::kHistoryLost: return "HISTORY_LOST";
    case Code::kAheadOfMaster: return "AHEAD_OF_MASTER";
  }
  return "UNKNOWN";
}

bool IsRetryable(Code code) {
  switch (code) {
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
    case Code::kConnectionLost:
    case Code::kSafeMode:
    case Code::kReplicaBehind:
    case Code::kReplicaUnclean:
    case Code::kNotPrimary:
    case Code::kTokenExpired:
    case Code::kOutOfOrder:
    case Code::kSuperseded:
    case Code::kWaitingFor:
      return true;
    default:
      return false;
  }
}

bool IsFenced(Code code) {
  return code == Code::kStaleEpoch || code == Code::kStaleVersion || code == Code::kStaleGeneration;
}

std::string Error::ToString() const {
  std::string out(CodeName(code));
  out += ": ";
  out += message;
  if (token != 0 || mark != 0) {
    char buf[96];
    std::snprintf(buf, sizeof buf, " (token %" PRIu64 ".%" PRIu64 ", mark %" PRIu64 ".%" PRIu64, token >> 32,
                  token & 0xffffffffu, mark >> 32, mark & 0xffffffffu);
    out += buf;
    if (!holder.empty()) out += ", holder " + holder;
    out += ")";
  } else if (!holder.empty()) {
    out += " (holder " + holder + ")";
  }
  if (!next_step.empty()) out += "; " + next_step;
  return out;
}

}  // namespace picket
