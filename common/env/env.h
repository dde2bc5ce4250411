// The seam between the product and the world (design §8). One Env per event loop in production,
// one per node incarnation in the simulator. Product code reads time and randomness only through
// it, suspends only through OneShot and what is built on it, and starts tasks only through Spawn.
//
// Everything runs on executor(), one thread; no member is thread-safe except where it says so.
// Teardown (orderly in production, a crash in the simulator) never resumes suspended tasks: it
// destroys their frames, then the objects they used. So a task may use the object that spawned it
// without keeping it alive, and destructors must not assume that Env still does anything: every
// operation on a dead Env is a silent no-op.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/env/buffer.h"
#include "common/env/fs.h"
#include "common/env/net.h"
#include "common/env/task.h"

namespace picket {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };

// A step of the protocol, told to whoever watches: nobody in production, checkers and the trace
// hash in the simulator. Fields that do not apply are 0.
struct ProtocolEvent {
  enum class Kind : uint8_t {
    kEpochActivated,     // value = epoch number
    kVersionMinted,      // master, before use
    kVersionCommitted,   // master: `current` moved; value = number of members
    kLeaseGranted,       // master: server = primary
    kGenerationMinted,   // master; value = inode
    kMarkRaised,         // chunkserver: durable mark on a replica; value = its length
    kReplicaCreated,     // chunkserver, durable
    kReplicaDeleted,     // chunkserver: moved to quarantine
    kMutationApplied,    // chunkserver: value = serial, length = the end of the bytes
    kReplicaTruncated,   // chunkserver, by a master's order: length = new length
    kReplicaSealed,      // chunkserver: length, value = digest
    kMutationRefused,    // chunkserver: value = Code
    kAcknowledged,       // client library: length bytes of the chunk are acknowledged
    kChunkSealed,        // master: committed seal; length, value = digest
    kOverwriteApplied,   // chunkserver: value = serial, length = the end of the replaced bytes
    kChunkTruncated,     // master: acknowledged bytes are taken away on purpose; length = what is left
    kRecoveryBegun,      // master: a fresh generation fences the writer; value = inode
    kRecordAcknowledged, // client library: length = offset of the frame in the chunk, value = sequence
  };
  Kind kind;
  ServerId server;
  ChunkId chunk;
  Version version;
  Generation generation;
  uint64_t length = 0;
  uint64_t value = 0;
};

using TimerId = uint64_t;

// Base of every suspended waiter; linked in its Env so that teardown can destroy the frame.
class WaiterHook {
 public:
  virtual void Abandon() = 0;

 protected:
  ~WaiterHook() = default;

 private:
  friend class Env;
  WaiterHook* prev_ = nullptr;
  WaiterHook* next_ = nullptr;
};

class Env {
 public:
  virtual ~Env() = default;

  // Never runs a posted function inline.
  virtual Executor executor() = 0;
  virtual Mono Now() = 0;
  // Nanoseconds since the Unix epoch: for display, file times and logs; may jump. Never for leases.
  virtual int64_t WallNanos() = 0;
  virtual uint64_t Random() = 0;
  // Bytes fit for keys and nonces. (The simulator's are seeded like all else.)
  virtual std::string RandomBytes(size_t n) = 0;
  // Runs `fn` once on executor(), never before `when` on this node's clock.
  virtual TimerId At(Mono when, Fn fn) = 0;
  virtual void Cancel(TimerId id) noexcept = 0;  // destroys fn; unknown or fired ids are ignored
  // Runs `fn` where blocking is allowed (production: a worker thread; the simulator: inline, then the
  // simulated I/O time passes) and resumes when it is done. Only for LevelDB; files have File.
  virtual Task<> Offload(Fn fn) = 0;
  // An uninitialised buffer, from a pool where that pays.
  virtual Buffer Allocate(size_t size) = 0;
  virtual Net& net() = 0;
  virtual Fs& fs() = 0;
  virtual void Log(LogLevel level, std::string_view message) = 0;
  virtual bool LogEnabled(LogLevel level) = 0;
  virtual void Trace(const ProtocolEvent&) {}
  // A bug of ours: an exception left a task, or a promise of the product is broken. Ends the process
  // (production) or fails the run (simulator) after logging `what`. Returns only in the simulator.
  virtual void Fatal(std::string what) = 0;
  // The simulator turns rare paths on by name, seeded per site; production never does.
  virtual bool Buggify(std::string_view /*site*/) { return false; }

  // Starts a task. An exception that leaves it is Fatal.
  void Spawn(Task<> task);
  Task<> Sleep(Nanos duration);

  // Destroys every suspended task of this Env.
  void AbandonAll();
  // How many tasks are suspended in a OneShot now.
  size_t WaiterCount() const;

 private:
  template <class T>
  friend class OneShot;
  void Link(WaiterHook* w);
  void Unlink(WaiterHook* w);
  WaiterHook* waiters_ = nullptr;
};

}  // namespace picket
