// Errors of the Picket client library: values, never exceptions.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace picket::client {

// What went wrong, by kind. The names are those of docs/PROTOCOL.md; new ones may be added.
enum class ErrorKind : uint16_t {
  kInvalidArgument,
  kNotFound,
  kAlreadyExists,
  kNotEmpty,
  kNotDirectory,
  kIsDirectory,
  kPermissionDenied,
  kConflict,
  kFenced,        // STALE_*: another writer, replica set or master took over; final for this handle
  kLeaseHeld,     // another client holds the file's write lease
  kUnavailable,   // no master, no chunkserver, too few replicas; may work later
  kTimeout,       // outcome unknown
  kNoSpace,
  kCorrupt,       // no replica has bytes that match their checksums
  kUnsupported,
  kInternal,
};

struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string code;       // the protocol's name, e.g. "STALE_GENERATION"
  std::string message;    // one line: object, cause
  std::string next_step;  // what to do, may be empty
  uint64_t token = 0;     // fencing: what this client held (epoch << 32 | counter)
  uint64_t mark = 0;      //          what it was refused for
  std::string holder;     //          who holds it now, if known
  // "CODE: message (token 1.2, mark 1.3, holder …); next step"
  std::string ToString() const;
};

template <class T = void>
using Result = std::expected<T, Error>;

std::string_view ErrorKindName(ErrorKind kind);

}  // namespace picket::client
