#include "master/meta_store.h"

#include <fmt/format.h>
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <set>

#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/mutation.h"
#include "common/env/one_shot.h"
#include "common/obs/log.h"
#include "master/keys.h"

namespace picket {
namespace {

// One commit stays far below the memtable, so that a write never waits for a compaction it started.
constexpr size_t kWriteBufferBytes = 16 << 20;
constexpr size_t kGroupBytes = 1 << 20;
// The newest log entries, whose rows are compared with the tables at open.
constexpr uint64_t kEntriesCompared = 1000;

leveldb::Slice AsSlice(std::string_view s) { return {s.data(), s.size()}; }
std::string_view AsView(const leveldb::Slice& s) { return {s.data(), s.size()}; }

leveldb::ReadOptions Verified() {
  leveldb::ReadOptions options;
  options.verify_checksums = true;  // once per block that is read from the disk
  return options;
}

Error FromLevelDb(const leveldb::Status& s, std::string_view what) {
  return Error(s.IsCorruption() ? Code::kCorrupt : Code::kIoError, fmt::format("{}: {}", what, s.ToString()));
}

// An open database with what it borrows. Shared with the writes that are under way off the executor.
struct Database {
  std::unique_ptr<leveldb::Cache> cache;
  std::unique_ptr<const leveldb::FilterPolicy> filter;
  std::unique_ptr<leveldb::DB> db;  // destroyed first
};

struct PendingBatch {
  record::LogEntry entry;
  std::string bytes;  // the entry, serialised
};

// One synced write of several batches.
struct Group {
  std::shared_ptr<Database> database;
  leveldb::WriteBatch write;
  leveldb::Status status;
};

void Apply(const PendingBatch& batch, leveldb::WriteBatch* write) {
  const uint64_t revision = batch.entry.revision();
  for (const record::Row& row : batch.entry.rows()) {
    if (row.remove()) {
      write->Delete(row.key());
    } else {
      write->Put(row.key(), row.value());
    }
  }
  write->Put(keys::Log(revision), batch.bytes);
  if (revision > MetaStore::kLogEntriesKept) write->Delete(keys::Log(revision - MetaStore::kLogEntriesKept));
}

struct LogTail {
  uint64_t revision = 0;  // of the last entry; 0 = an empty store
  uint32_t crc = 0;       // of the last entry
};

Error Broken(uint64_t revision, std::string_view how) {
  return Error(Code::kCorrupt, fmt::format("the metadata log is broken at revision {}: {}", revision, how))
      .WithNextStep("restore the metadata directory from a backup; do not start an older copy beside this one");
}

// The newest entries tell what the tables must hold: of each key the last row that touched it.
Status CompareRows(leveldb::DB& db, const leveldb::ReadOptions& options, const std::deque<record::LogEntry>& newest) {
  std::set<std::string, std::less<>> seen;
  for (auto entry = newest.rbegin(); entry != newest.rend(); ++entry) {
    for (auto row = entry->rows().rbegin(); row != entry->rows().rend(); ++row) {
      if (!seen.insert(row->key()).second) continue;
      std::string value;
      const leveldb::Status s = db.Get(options, row->key(), &value);
      if (!s.ok() && !s.IsNotFound()) return Fail(FromLevelDb(s, "reading the metadata"));
      if (s.IsNotFound() != row->remove() || (s.ok() && value != row->value())) {
        return Fail(Broken(entry->revision(), "a row that it wrote is not there"));
      }
    }
  }
  return {};
}

// Checks that the kept entries are without a gap, that each bears the CRC of the one before, and that
// the rows of the newest are in the tables (meta_store.h, 4).
Result<LogTail> VerifyLog(leveldb::DB& db) {
  leveldb::ReadOptions options = Verified();
  options.fill_cache = false;
  std::unique_ptr<leveldb::Iterator> it(db.NewIterator(options));
  const std::string end = keys::Log(std::numeric_limits<uint64_t>::max());
  LogTail tail;
  it->Seek(end);
  if (it->Valid()) {
    it->Prev();
  } else {
    it->SeekToLast();
  }
  if (!it->status().ok()) return Fail(FromLevelDb(it->status(), "reading the metadata log"));
  if (!it->Valid() || !AsView(it->key()).starts_with(keys::kLog)) {
    it->SeekToFirst();
    if (it->Valid()) return Fail(Broken(0, "there is metadata, but no log"));
    return tail;
  }
  const uint64_t last = keys::LastNumber(AsView(it->key()));
  const uint64_t first = last > MetaStore::kLogEntriesKept ? last - MetaStore::kLogEntriesKept + 1 : 1;
  std::deque<record::LogEntry> newest;
  uint64_t expected = first;
  for (it->Seek(keys::Log(first)); it->Valid() && AsView(it->key()).starts_with(keys::kLog); it->Next(), ++expected) {
    if (keys::LastNumber(AsView(it->key())) != expected) return Fail(Broken(expected, "the entry is missing"));
    record::LogEntry entry;
    if (!entry.ParseFromArray(it->value().data(), static_cast<int>(it->value().size())) ||
        entry.revision() != expected) {
      return Fail(Broken(expected, "the entry does not parse"));
    }
    const bool chained = expected == first ? first > 1 || entry.previous_crc() == 0 : entry.previous_crc() == tail.crc;
    if (!PICKET_MUTANT(meta_log_chain) && !chained) {
      return Fail(Broken(expected, "it does not follow the entry before it"));
    }
    tail = LogTail{expected, Crc32c(AsView(it->value()))};
    newest.push_back(std::move(entry));
    if (newest.size() > kEntriesCompared) newest.pop_front();
  }
  if (!it->status().ok()) return Fail(FromLevelDb(it->status(), "reading the metadata log"));
  if (tail.revision != last) return Fail(Broken(expected, "the entry is missing"));
  PICKET_TRY(CompareRows(db, options, newest));
  return tail;
}

}  // namespace

void Batch::Put(std::string key, std::string value) {
  record::Row& row = rows_.emplace_back();
  row.set_key(std::move(key));
  row.set_value(std::move(value));
}

void Batch::Remove(std::string key) {
  record::Row& row = rows_.emplace_back();
  row.set_key(std::move(key));
  row.set_remove(true);
}

struct MetaStore::Impl {
  Impl(Env& e, Options o) : env(e), options(std::move(o)) {}

  // A staged row that is not yet known to be in the database.
  struct Staged {
    std::optional<std::string> value;  // nothing: removed
    uint64_t revision = 0;
  };

  static void OpenDatabase(Env* env, const Options& options, Database* database, Result<LogTail>* out);
  Status LoadActivations();
  Task<> CommitLoop();
  void Committed(uint64_t up_to);
  void Failed(Error error);

  Env& env;
  Options options;
  std::shared_ptr<Database> database;
  Epoch epoch;
  std::vector<record::Activation> activations;
  uint64_t staged = 0;    // revision of the newest staged batch
  uint64_t durable = 0;   // and of the newest durable one
  uint32_t last_crc = 0;  // of the newest staged log entry
  std::optional<Error> failure;  // what waiters get
  std::string cause;
  std::vector<Fn> on_failure;
  bool committing = false;
  std::deque<PendingBatch> pending;  // bounded by the callers, each of which waits for its batch
  std::map<std::string, Staged, std::less<>> overlay;
  std::multimap<uint64_t, OneShot<Status>*> waiting;  // each lives in its waiter's frame
};

MetaStore::MetaStore(Env& env, Options options) : impl_(std::make_unique<Impl>(env, std::move(options))) {}
MetaStore::~MetaStore() = default;

void MetaStore::Impl::OpenDatabase(Env* env, const Options& options, Database* database, Result<LogTail>* out) {
  database->cache.reset(leveldb::NewLRUCache(options.cache_bytes));
  database->filter.reset(leveldb::NewBloomFilterPolicy(10));
  leveldb::Options o;
  o.env = env->fs().leveldb_env();
  o.create_if_missing = true;
  // A torn tail of LevelDB's own log is what a power cut leaves, not an error; what paranoid checks
  // would add, the chained log entries check.
  o.paranoid_checks = false;
  o.write_buffer_size = kWriteBufferBytes;
  o.block_cache = database->cache.get();
  o.filter_policy = database->filter.get();
  leveldb::DB* db = nullptr;
  const leveldb::Status s = leveldb::DB::Open(o, options.dir, &db);
  if (!s.ok()) {
    *out = Fail(FromLevelDb(s, "opening the metadata in " + options.dir));
    return;
  }
  database->db.reset(db);
  *out = VerifyLog(*db);
}

Status MetaStore::Impl::LoadActivations() {
  std::unique_ptr<leveldb::Iterator> it(database->db->NewIterator(Verified()));
  for (it->Seek(AsSlice(keys::kActivations)); it->Valid() && AsView(it->key()).starts_with(keys::kActivations);
       it->Next()) {
    record::Activation a;
    if (!a.ParseFromArray(it->value().data(), static_cast<int>(it->value().size()))) {
      return Fail(Code::kCorrupt, "an activation row of the metadata does not parse");
    }
    activations.push_back(std::move(a));
  }
  if (!it->status().ok()) return Fail(FromLevelDb(it->status(), "reading the activations"));
  if (activations.empty() != (durable == 0)) return Fail(Broken(durable, "the activation rows are missing"));
  return {};
}

Task<Status> MetaStore::Open() {
  Impl& m = *impl_;
  auto made = co_await m.env.fs().MakeDir(m.options.dir);
  if (!made) co_return Fail(made.error());
  auto database = std::make_shared<Database>();
  auto tail = std::make_shared<Result<LogTail>>();
  Fn open = [env = &m.env, options = m.options, database, tail] {
    Impl::OpenDatabase(env, options, database.get(), tail.get());
  };
  co_await m.env.Offload(std::move(open));
  if (!*tail) co_return Fail(tail->error());
  m.database = std::move(database);
  m.staged = m.durable = (*tail)->revision;
  m.last_crc = (*tail)->crc;
  PICKET_CO_TRY(m.LoadActivations());

  record::Activation activation;
  const uint32_t previous = m.activations.empty() ? 0 : m.activations.back().epoch();
  activation.set_epoch(PICKET_MUTANT(meta_epoch_rises) && previous > 0 ? previous : previous + 1);
  auto adopted = Get(keys::Counter(keys::kAdoptedEpoch));
  if (!adopted) co_return Fail(adopted.error());
  if (*adopted) {
    activation.set_epoch(std::max(activation.epoch(), static_cast<uint32_t>(keys::DecodeU64(**adopted))));
    activation.set_adopted(true);
  }
  activation.set_nonce(LoadFixed<uint64_t>(m.env.RandomBytes(sizeof(uint64_t)).data()));
  activation.set_first_revision(next_revision());
  activation.set_wall_ns(m.env.WallNanos());
  m.epoch = Epoch{activation.epoch(), activation.nonce()};
  Batch batch;
  batch.Put(keys::Activation(activation.epoch()), activation);
  if (*adopted) batch.Remove(keys::Counter(keys::kAdoptedEpoch));
  m.activations.push_back(std::move(activation));
  auto committed = co_await Commit(std::move(batch));
  if (!committed) co_return Fail(committed.error());
  ProtocolEvent event;
  event.kind = ProtocolEvent::Kind::kEpochActivated;
  event.value = m.epoch.number;
  m.env.Trace(event);
  PICKET_LOG(m.env, kInfo, "metadata in {}: epoch {}, revision {}", m.options.dir, m.epoch.number, m.durable);
  co_return Status();
}

Epoch MetaStore::epoch() const { return impl_->epoch; }
const std::vector<record::Activation>& MetaStore::activations() const { return impl_->activations; }
uint64_t MetaStore::revision() const { return impl_->staged; }
uint64_t MetaStore::durable_revision() const { return impl_->durable; }
bool MetaStore::failed() const { return impl_->failure.has_value(); }
void MetaStore::AdoptAt(Batch* batch, uint32_t epoch) {
  batch->Put(keys::Counter(keys::kAdoptedEpoch), keys::EncodeU64(epoch));
}
void MetaStore::OnFailure(Fn fn) { impl_->on_failure.push_back(std::move(fn)); }

Result<std::optional<std::string>> MetaStore::Get(std::string_view key) {
  Impl& m = *impl_;
  if (auto it = m.overlay.find(key); it != m.overlay.end()) return it->second.value;
  std::string value;
  const leveldb::Status s = m.database->db->Get(Verified(), AsSlice(key), &value);
  if (s.IsNotFound()) return std::nullopt;
  if (!s.ok()) return Fail(FromLevelDb(s, "reading the metadata"));
  return value;
}

Result<std::vector<MetaRow>> MetaStore::Scan(std::string_view prefix, std::string_view start_after, size_t limit) {
  Impl& m = *impl_;
  std::vector<MetaRow> out;
  std::unique_ptr<leveldb::Iterator> it(m.database->db->NewIterator(Verified()));
  const std::string from(std::max(prefix, start_after));
  it->Seek(from);
  if (!start_after.empty() && it->Valid() && AsView(it->key()) == start_after) it->Next();
  auto over = start_after < prefix ? m.overlay.lower_bound(prefix) : m.overlay.upper_bound(start_after);
  while (out.size() < limit) {
    const bool on_disk = it->Valid() && AsView(it->key()).starts_with(prefix);
    const bool in_overlay = over != m.overlay.end() && over->first.starts_with(prefix);
    if (!on_disk && !in_overlay) break;
    // The overlay wins over an equal key of the database.
    if (in_overlay && (!on_disk || over->first <= AsView(it->key()))) {
      if (on_disk && over->first == AsView(it->key())) it->Next();
      if (over->second.value) out.push_back(MetaRow{over->first, *over->second.value});
      ++over;
    } else {
      out.push_back(MetaRow{it->key().ToString(), it->value().ToString()});
      it->Next();
    }
  }
  if (!it->status().ok()) return Fail(FromLevelDb(it->status(), "reading the metadata"));
  return out;
}

Status MetaStore::CheckWritable() const {
  if (!impl_->failure) return {};
  return Fail(Error(Code::kReadOnly, "the metadata store refuses changes since a write failed: " + impl_->cause)
                  .WithNextStep("restart the master when its disk is well"));
}

Result<uint64_t> MetaStore::Stage(Batch batch) {
  Impl& m = *impl_;
  PICKET_TRY(CheckWritable());
  PendingBatch& pending = m.pending.emplace_back();
  pending.entry.set_revision(++m.staged);
  pending.entry.set_previous_crc(m.last_crc);
  pending.entry.set_epoch(m.epoch.number);
  for (record::Row& row : std::move(batch).TakeRows()) {
    Impl::Staged& staged = m.overlay[row.key()];
    staged.revision = m.staged;
    staged.value.reset();
    if (!row.remove()) staged.value = row.value();
    *pending.entry.add_rows() = std::move(row);
  }
  pending.bytes = pending.entry.SerializeAsString();
  m.last_crc = Crc32c(pending.bytes);
  if (!m.committing) {
    m.committing = true;
    m.env.Spawn(m.CommitLoop());
  }
  return m.staged;
}

Task<Status> MetaStore::Durable(uint64_t revision) {
  Impl& m = *impl_;
  if (revision <= m.durable || PICKET_MUTANT(meta_answer_after_durable)) co_return Status();
  if (m.failure) co_return Fail(*m.failure);
  PICKET_CHECK(revision <= m.staged);
  OneShot<Status> done(m.env);
  m.waiting.emplace(revision, &done);
  Status result = co_await done.Wait();
  co_return result;
}

Task<Result<uint64_t>> MetaStore::Commit(Batch batch) {
  auto revision = Stage(std::move(batch));
  if (!revision) co_return Fail(revision.error());
  PICKET_CO_TRY(co_await Durable(*revision));
  co_return *revision;
}

// Writes what is staged, a group at a time, until nothing is left. One runs at most.
Task<> MetaStore::Impl::CommitLoop() {
  while (!pending.empty()) {
    auto group = std::make_shared<Group>();
    group->database = database;
    uint64_t last = 0;
    for (const PendingBatch& batch : pending) {
      if (last != 0 && group->write.ApproximateSize() + 2 * batch.bytes.size() > kGroupBytes) break;
      Apply(batch, &group->write);
      last = batch.entry.revision();
    }
    Fn write = [group] {
      leveldb::WriteOptions options;
      options.sync = !PICKET_MUTANT(meta_sync_before_answer);
      group->status = group->database->db->Write(options, &group->write);
    };
    co_await env.Offload(std::move(write));
    if (!group->status.ok()) {
      Failed(FromLevelDb(group->status, "writing the metadata"));
      break;
    }
    Committed(last);
  }
  committing = false;
}

void MetaStore::Impl::Committed(uint64_t up_to) {
  durable = up_to;
  while (!pending.empty() && pending.front().entry.revision() <= up_to) {
    for (const record::Row& row : pending.front().entry.rows()) {
      // A newer staged batch may have set the row again.
      auto it = overlay.find(row.key());
      if (it != overlay.end() && it->second.revision <= up_to) overlay.erase(it);
    }
    pending.pop_front();
  }
  while (!waiting.empty() && waiting.begin()->first <= up_to) {
    auto first = waiting.begin();
    OneShot<Status>* waiter = first->second;
    waiting.erase(first);
    waiter->Set(Status());
  }
}

// Whether the failed write reached the disk shows at the next start; until then nothing may build on it.
void MetaStore::Impl::Failed(Error error) {
  PICKET_LOG(env, kError, "{}; the metadata store refuses changes from now on", error.message);
  cause = error.message;
  Error unknown(Code::kUnavailable, "whether the change is durable is unknown: " + cause);
  failure = std::move(unknown).WithNextStep("restart the master when its disk is well; then repeat the request");
  pending.clear();
  overlay.clear();
  staged = durable;
  for (Fn& fn : on_failure) fn();
  auto woken = std::exchange(waiting, {});
  for (auto& [revision, waiter] : woken) waiter->Set(Fail(*failure));
}

}  // namespace picket
