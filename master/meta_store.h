// The master's durable state: typed rows in LevelDB, one atomic batch per operation, group commit.
// The only file pair of the project that includes leveldb/* (meta_store.cc).
//
// 1. A staged batch is seen by every later read on this executor, so operations stay serial without
//    locks; it is durable when Durable(revision) returns. An answer leaves only after that.
// 2. Batches become durable in the order of their revisions; many waiting ones share one sync.
// 3. If a commit fails, every staged batch that is not durable is dropped together, their waiters
//    fail, and the store refuses further batches (kReadOnly) until the process starts again:
//    memory never runs ahead of the disk (HDFS-17861).
// 4. Each batch also writes log/<revision> (records.proto LogEntry), chained by CRC: rot inside synced
//    data is found at open. Entries behind kLogEntriesKept are pruned.
// Runs on the master's executor; LevelDB writes and opens go through Env::Offload.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/env/env.h"
#include "proto/records.pb.h"

namespace picket {

// Row changes that become durable together or not at all.
class Batch {
 public:
  void Put(std::string key, std::string value);
  void Put(std::string key, const google::protobuf::MessageLite& value) { Put(std::move(key), value.SerializeAsString()); }
  void Remove(std::string key);
  bool empty() const { return rows_.empty(); }
  const std::vector<record::Row>& rows() const { return rows_; }
  std::vector<record::Row> TakeRows() && { return std::move(rows_); }

 private:
  std::vector<record::Row> rows_;
};

struct MetaRow {
  std::string key;
  std::string value;
};

class MetaStore {
 public:
  struct Options {
    std::string dir;               // of the LevelDB; made when missing
    size_t cache_bytes = 256 << 20;  // block cache: bounds memory whatever the number of files
  };
  MetaStore(Env& env, Options options);
  ~MetaStore();

  // Opens, checks the log chain, and activates: epoch + 1 (or an adopted one) with a fresh nonce, synced before it returns.
  Task<Status> Open();

  Epoch epoch() const;
  // One row per activation, oldest first: what a chunkserver's mark is judged by (F12).
  const std::vector<record::Activation>& activations() const;
  // The revision of the newest staged batch, and what the next one will get.
  uint64_t revision() const;
  uint64_t next_revision() const { return revision() + 1; }
  // Of the newest durable batch: what may be told to servers that remember it (F12).
  uint64_t durable_revision() const;
  // True after a failed commit.
  bool failed() const;
  // kReadOnly, with the cause, when failed.
  Status CheckWritable() const;
  // The next activation begins at that epoch, above every mark that servers have seen, and says so in its row
  // (design §7). Into `batch`; only an operator decides it. REQUIRES: above the present one.
  static void AdoptAt(Batch* batch, uint32_t epoch);
  // Runs `fn` when a commit fails, after what was staged is dropped: for tables that keep something of
  // their rows in memory and must read it anew. `fn` must stay callable as long as the store.
  void OnFailure(Fn fn);

  // Reads see staged batches. kCorrupt / kIoError when the disk does.
  Result<std::optional<std::string>> Get(std::string_view key);
  template <class Message>
  Result<std::optional<Message>> GetAs(std::string_view key) {
    auto row = Get(key);
    if (!row) return Fail(row.error());
    if (!*row) return std::optional<Message>();
    Message m;
    if (!m.ParseFromString(**row)) return Fail(Code::kCorrupt, "a metadata row does not parse");
    return std::optional<Message>(std::move(m));
  }
  // Rows whose key begins with `prefix` and is > `start_after` (when not empty), in key order.
  Result<std::vector<MetaRow>> Scan(std::string_view prefix, std::string_view start_after, size_t limit);

  // Gives the batch the next revision and makes it visible; returns the revision. kReadOnly when failed.
  Result<uint64_t> Stage(Batch batch);
  // Returns when that revision is durable, or with the cause why it never will be.
  Task<Status> Durable(uint64_t revision);
  // Stage, then Durable.
  Task<Result<uint64_t>> Commit(Batch batch);
  // For answers that only read: everything they may have seen is durable on return.
  Task<Status> ReadBarrier() { return Durable(revision()); }

  static constexpr size_t kLogEntriesKept = 10000;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace picket
