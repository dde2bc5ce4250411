#include "picket/status.h"

#include "picket/client.h"

namespace picket::client {
namespace {

std::string Spelled(uint64_t token) {
  return std::to_string(token >> 32) + "." + std::to_string(token & 0xffffffffu);
}

}  // namespace

std::string Error::ToString() const {
  std::string out = code + ": " + message;
  if (kind == ErrorKind::kConflict) {
    // Revisions: the message has them already.
  } else if (token != 0 || mark != 0) {
    out += " (token " + Spelled(token) + ", mark " + Spelled(mark);
    if (!holder.empty()) out += ", holder " + holder;
    out += ")";
  } else if (!holder.empty()) {
    out += " (holder " + holder + ")";
  }
  if (!next_step.empty()) out += "; " + next_step;
  return out;
}

std::string_view ErrorKindName(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidArgument: return "invalid argument";
    case ErrorKind::kNotFound: return "not found";
    case ErrorKind::kAlreadyExists: return "already exists";
    case ErrorKind::kNotEmpty: return "not empty";
    case ErrorKind::kNotDirectory: return "not a directory";
    case ErrorKind::kIsDirectory: return "is a directory";
    case ErrorKind::kPermissionDenied: return "permission denied";
    case ErrorKind::kConflict: return "conflict";
    case ErrorKind::kFenced: return "fenced";
    case ErrorKind::kLeaseHeld: return "lease held";
    case ErrorKind::kUnavailable: return "unavailable";
    case ErrorKind::kTimeout: return "timeout";
    case ErrorKind::kNoSpace: return "no space";
    case ErrorKind::kCorrupt: return "corrupt";
    case ErrorKind::kUnsupported: return "unsupported";
    case ErrorKind::kInternal: return "internal";
  }
  return "unknown";
}

std::string_view LibraryVersion() { return PICKET_VERSION; }

}  // namespace picket::client
