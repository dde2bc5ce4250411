// Expected failures are values. One closed list of codes; every fencing refusal has its own,
// so a caller (and a test) can tell the reason without reading text. std only.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace picket {

// Stable on the wire and in documents: numbers are never reused.
enum class Code : uint16_t {
  kOk = 0,
  // The request itself.
  kInvalidArgument = 1,
  kNotFound = 2,
  kAlreadyExists = 3,
  kNotEmpty = 4,
  kNotDirectory = 5,
  kIsDirectory = 6,
  kPermissionDenied = 7,
  kConflict = 8,     // a stated condition does not hold; the message has the current value
  kUnsupported = 9,
  // The world around it.
  kUnavailable = 20,        // nobody there, or not able to serve now; retry later
  kDeadlineExceeded = 21,   // outcome unknown
  kConnectionLost = 22,     // outcome unknown
  kNoSpace = 23,
  kIoError = 24,
  kCorrupt = 25,            // bytes do not match their checksum
  kIntegrity = 26,          // replicas contradict what was acknowledged: stopped loudly
  kReadOnly = 27,
  kSafeMode = 28,
  kInternal = 29,           // our bug
  // Fencing: final for the token that was refused (design §1).
  kStaleEpoch = 40,
  kStaleVersion = 41,
  kStaleGeneration = 42,
  // Fencing: ask the master again; says nothing against the replica (D18).
  kReplicaBehind = 50,
  kReplicaUnclean = 51,
  kNotPrimary = 52,
  kTokenExpired = 53,
  kOutOfOrder = 54,         // serial n+1 only
  kSuperseded = 55,         // a newer attempt took over (F8, D17)
  // Other refusals of the protocol.
  kTokenForged = 60,
  kNotLeaseHolder = 61,
  kLeaseConflict = 62,      // somebody else holds the write lease
  kNotEnoughReplicas = 63,
  kWaitingFor = 64,         // F20
  kShort = 65,              // replica shorter than the order says
  kDedupWindowExceeded = 66,
  kChunkFull = 67,          // a record does not fit any more: go on in the next chunk
  kLockDelayed = 68,        // a lock was not released; retry after the lock-delay
  kWrongCluster = 70,
  kHistoryLost = 71,        // F12
  kAheadOfMaster = 72,      // D14
};

// "STALE_VERSION", …: the name used on the wire's logs, the CLI and in documents.
std::string_view CodeName(Code code);
// True for codes after which the same request may be sent again (with the same mutation id).
bool IsRetryable(Code code);
// True for STALE_*: the token is dead for good.
bool IsFenced(Code code);

struct Error {
  Code code = Code::kInternal;
  std::string message;        // one line: object and cause
  uint64_t token = 0;         // what the caller brought, where a token was judged
  uint64_t mark = 0;          // what it was compared with
  std::string holder;         // who holds it now, if known
  uint64_t server = 0;        // the server that failed or refused, when it is not the one that answers
  std::string next_step;      // what the caller should do
  uint32_t retry_after_ms = 0;

  Error() = default;
  Error(Code c, std::string m) : code(c), message(std::move(m)) {}

  Error&& WithTokens(uint64_t t, uint64_t m) && { token = t; mark = m; return std::move(*this); }
  Error&& WithHolder(std::string h) && { holder = std::move(h); return std::move(*this); }
  Error&& WithNextStep(std::string s) && { next_step = std::move(s); return std::move(*this); }
  // "CODE: message (token …, mark …, holder …); next step"
  std::string ToString() const;
};

template <class T = void>
using Result = std::expected<T, Error>;
using Status = Result<void>;

inline std::unexpected<Error> Fail(Code code, std::string message) {
  return std::unexpected<Error>(Error(code, std::move(message)));
}
inline std::unexpected<Error> Fail(Error e) { return std::unexpected<Error>(std::move(e)); }

}  // namespace picket

// Returns the error of a Status/Result expression from a function or, with _CO, from a coroutine.
#define PICKET_TRY(expr)                                                        \
  do {                                                                          \
    if (auto picket_try = (expr); !picket_try)                                  \
      return std::unexpected<::picket::Error>(std::move(picket_try).error());   \
  } while (0)
#define PICKET_CO_TRY(expr)                                                      \
  do {                                                                           \
    auto picket_try = (expr);                                                    \
    if (!picket_try)                                                             \
      co_return std::unexpected<::picket::Error>(std::move(picket_try).error()); \
  } while (0)
