// Locks on paths, and the sequencers that prove them to others (Chubby §2.4). Reached through picket/client.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "picket/status.h"

namespace picket::client {

struct LockOptions {
  bool shared = false;             // several may hold it at once; else one
  uint32_t wait_ms = 0;            // for its present holders to leave
  std::string writer_id = {};      // the logical holder: after a restart it takes its own lock over at once
  uint32_t ttl_ms = 0;             // not renewed for so long, others may claim it; 0: the cluster's soft limit
  uint32_t lock_delay_ms = 0;      // after an end that was no release others are kept out so long; 0: the cluster's
};

// What a sequencer says of itself.
struct Sequencer {
  std::string cluster;
  std::string path;                // as it was locked
  uint64_t inode = 0;
  bool shared = false;
  uint64_t generation = 0;         // epoch << 32 | counter: a later holder has a higher one
  std::string holder;              // a client's id, 16 hex digits
  uint64_t key = 0;                // that signed it
};

enum class Verdict : uint8_t { kValid, kStale, kForged, kExpired };
std::string_view VerdictName(Verdict verdict);

struct SequencerState {
  Verdict verdict = Verdict::kForged;
  std::optional<Sequencer> sequencer;  // not of forged ones
  uint64_t newest_generation = 0;  // of the file, where it is known
  std::string holder;              // who holds the file now, if somebody does and it is known
  std::string detail;              // why not valid
};

// A lock that this client holds and renews. Thread-safe. Not released at destruction: it runs out, and its
// lock-delay begins.
class Lock {
 public:
  virtual ~Lock() = default;
  // The proof, as text. Whoever changes something in the lock's name shows it, and whoever is asked checks it.
  virtual const std::string& sequencer() const = 0;
  virtual const std::string& path() const = 0;
  virtual uint64_t generation() const = 0;
  // How long it is certain to be held without another renewal, by this machine's clock; 0 when it is lost.
  virtual uint32_t left_ms() = 0;
  // What lost it, for good: the master said so, or no renewal was answered in time.
  virtual std::optional<Error> lost() = 0;
  // In order: the next holder need not wait. Of a lost lock: what lost it.
  virtual Result<> Release() = 0;
};

// Without asking anybody, so also of a forged one. kPermissionDenied: not a sequencer at all.
Result<Sequencer> ReadSequencer(std::string_view text);

}  // namespace picket::client
