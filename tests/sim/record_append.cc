// Clients append records to a few files at once, many in flight, and retry over every fault.
//
//   an acknowledged record   is in the file exactly once, at the offset that was answered
//   any record               is there at most once, whole, and was handed over by somebody
//   a failed appender        failed for a reason that a fault can give
#include <fmt/format.h>

#include <deque>
#include <map>

#include "client/core/record_appender.h"
#include "client/core/record_reader.h"
#include "common/base/coding.h"
#include "tests/sim/pattern.h"
#include "tests/sim/workload.h"

namespace picket::sim {
namespace {

class RecordAppend final : public Workload {
 public:
  explicit RecordAppend(const Surroundings& s) : in_(s), rng_(s.world->Stream("record_append")) {
    for (size_t n = 0; n < kFiles; ++n) {
      File file;
      file.path = fmt::format("/records-{}", n);
      file.replication = rng_.Chance(0.8) ? 3 : static_cast<uint32_t>(rng_.Range(1, 2));
      files_.push_back(std::move(file));
    }
  }

  Task<> Work(Env* env, FileSystem* fs, size_t client) override;
  Task<> Verify(Env* env, FileSystem* fs) override;
  std::string Summary() const override {
    return fmt::format("records={} acked={} failed={} found={} sessions={}", records_.size(), acked_, failed_,
                       found_, sessions_);
  }

 private:
  struct File {
    std::string path;
    uint32_t replication = 0;
  };
  struct Record {
    size_t file = 0;
    uint64_t size = 0;
    bool synced = false;
    std::optional<uint64_t> offset;  // acknowledged there
    size_t seen = 0;                 // by Verify
  };

  static constexpr size_t kFiles = 2;
  static constexpr size_t kMaxRecords = 1500;  // of one run: bounds its time
  static constexpr uint64_t kChunkSize = 1 << 20;

  uint64_t DrawSize();
  Task<> Session(Env* env, FileSystem* fs, size_t file);
  Task<> AppendSome(RecordAppender* appender, size_t file);
  Buffer Bytes(uint64_t id) const;
  Task<> VerifyFile(FileSystem* fs, size_t file);
  void Seen(size_t file, const RecordReader::Record& record);
  void Failed(size_t file, const char* what, const Error& error);
  void Fail(const char* invariant, size_t file, std::string why) {
    in_.world->Fail(invariant, fmt::format("{} ({} replicas): {}", files_[file].path, files_[file].replication, why));
  }

  const Surroundings in_;
  Rng rng_;
  std::vector<File> files_;
  std::deque<Record> records_;  // by id
  uint64_t acked_ = 0;
  uint64_t failed_ = 0;
  uint64_t found_ = 0;
  uint64_t sessions_ = 0;
};

uint64_t RecordAppend::DrawSize() {
  switch (rng_.Below(10)) {
    case 0:
      return 8;
    case 1:
      return MaxRecord(kChunkSize);
    case 2:
      return MaxRecord(kChunkSize) - rng_.Below(2 * kRecordHeaderSize);
    case 3:
      return 60'000 + rng_.Below(100'000);
    default:
      return 8 + rng_.Below(9'000);
  }
}

// The record's number, then what only that number gives.
Buffer RecordAppend::Bytes(uint64_t id) const {
  Buffer bytes = PatternBuffer(id, 0, records_[id].size);
  StoreFixed<uint64_t>(bytes.data(), id);
  return bytes;
}

Task<> RecordAppend::Work(Env* env, FileSystem* fs, size_t) {
  while (!stopping() && records_.size() < kMaxRecords) {
    co_await Session(env, fs, rng_.Below(kFiles));
    co_await env->Sleep(std::chrono::milliseconds(rng_.Range(0, 2000)));
  }
}

void RecordAppend::Failed(size_t file, const char* what, const Error& error) {
  ++failed_;
  in_.world->Note(nullptr, LogLevel::kInfo,
                  fmt::format("{} of {} failed: {}", what, files_[file].path, error.ToString()));
  const bool lost = error.code == Code::kIntegrity && in_.harm->MayLose(files_[file].replication, false);
  if (!FaultsExplain(error.code) && !lost) Fail("appender-error", file, fmt::format("{}: {}", what, error.ToString()));
}

Task<> RecordAppend::Session(Env* env, FileSystem* fs, size_t file) {
  AppendFileOptions options;
  options.made.replication = files_[file].replication;
  options.made.chunk_size = kChunkSize;
  auto appender = co_await fs->AppendRecords(files_[file].path, options);
  if (!appender) {
    Failed(file, "opening", appender.error());
    co_return;
  }
  ++sessions_;
  const uint64_t rounds = 1 + rng_.Below(6);
  for (uint64_t n = 0; n < rounds && !stopping() && records_.size() < kMaxRecords; ++n) {
    co_await AppendSome(appender->get(), file);
    if (rng_.Chance(0.3)) co_await env->Sleep(std::chrono::milliseconds(rng_.Range(0, 1500)));
  }
  auto closed = co_await (*appender)->Close();
  if (!closed) Failed(file, "closing", closed.error());
}

Task<> RecordAppend::AppendSome(RecordAppender* appender, size_t file) {
  const bool sync = rng_.Chance(0.2);
  const uint64_t count = rng_.Chance(0.3) ? 1 : 1 + rng_.Below(24);
  const uint64_t first = records_.size();
  std::vector<Buffer> bytes;
  for (uint64_t n = 0; n < count; ++n) {
    records_.push_back({.file = file, .size = DrawSize(), .synced = sync, .offset = {}, .seen = 0});
    bytes.push_back(Bytes(first + n));
  }
  auto offsets = co_await appender->AppendAll(std::move(bytes), sync);
  for (uint64_t n = 0; n < count; ++n) {
    if (!offsets[n]) {
      Failed(file, "appending", offsets[n].error());
      continue;
    }
    ++acked_;
    records_[first + n].offset = *offsets[n];
  }
}

void RecordAppend::Seen(size_t file, const RecordReader::Record& found) {
  ++found_;
  const uint64_t id = found.bytes.size() < 8 ? records_.size() : LoadFixed<uint64_t>(found.bytes.data());
  if (id >= records_.size() || records_[id].file != file || Bytes(id).view() != found.bytes.view()) {
    return Fail("unknown-record", file, fmt::format("at {}: nobody appended these bytes here", found.offset));
  }
  Record& record = records_[id];
  if (++record.seen > 1) {
    return Fail("record-twice", file, fmt::format("record {} is there again at {}", id, found.offset));
  }
  if (record.offset && *record.offset != found.offset) {
    Fail("record-moved", file,
         fmt::format("record {} was answered at {} and is at {}", id, *record.offset, found.offset));
  }
}

Task<> RecordAppend::VerifyFile(FileSystem* fs, size_t file) {
  const bool excused = in_.harm->MayLose(files_[file].replication, false);
  // Appenders that died hold it open; what they were acknowledged is in it all the same.
  auto closed = co_await fs->RecoverLease(files_[file].path, true);
  if (!closed) {
    const bool absent = closed.error().code == Code::kNotFound;
    if (!absent && !excused) Fail("read", file, "recovering: " + closed.error().ToString());
    if (!absent) co_return;
  }
  auto reader = co_await fs->ReadRecords(files_[file].path);
  bool whole = reader.has_value();
  while (whole) {
    auto record = co_await (*reader)->Next();
    if (!record && !excused) Fail("read", file, record.error().ToString());
    if (!record) whole = false;
    if (!record || !*record) break;
    Seen(file, **record);
    if (in_.world->failed()) co_return;
  }
  for (uint64_t id = 0; id < records_.size(); ++id) {
    const Record& record = records_[id];
    if (record.file != file || !record.offset || record.seen > 0) continue;
    if (in_.harm->MayLose(files_[file].replication, record.synced) || (!whole && excused)) continue;
    co_return Fail("record-lost", file, fmt::format("record {}, answered at {}, is not there", id, *record.offset));
  }
}

Task<> RecordAppend::Verify(Env*, FileSystem* fs) {
  for (size_t file = 0; file < kFiles; ++file) {
    co_await VerifyFile(fs, file);
    if (in_.world->failed()) co_return;
  }
}

}  // namespace

std::unique_ptr<Workload> MakeRecordAppend(const Surroundings& s) { return std::make_unique<RecordAppend>(s); }

}  // namespace picket::sim
