// Writers contest a few files: they append under sessions of their own, take over from each other by claims,
// recoveries and their writer ids, stall in mid-write, and come back late.
//
//   an acknowledged entry   is at its offset, for ever, whoever took over
//   a takeover              begins at or after the end of all that was acknowledged, under a higher generation
//   a writer that failed    stays failed: not a byte of it is taken afterwards
//   a reader                sees every byte that was acknowledged before it began, and none that vanishes later
#include <fmt/format.h>

#include <deque>

#include "tests/sim/pattern.h"
#include "tests/sim/workload.h"

namespace picket::sim {
namespace {

class Contest final : public Workload {
 public:
  explicit Contest(const Surroundings& s) : in_(s), rng_(s.world->Stream("contest")), files_(kFiles) {
    for (size_t i = 0; i < kFiles; ++i) files_[i].path = fmt::format("/contested-{}", i);
  }

  Task<> Work(Env* env, FileSystem* fs, size_t client) override;
  Task<> Verify(Env* env, FileSystem* fs) override;
  std::string Summary() const override {
    return fmt::format("sessions={} conflicts={} recoveries={} fenced={} entries={} reads={}", sessions_, conflicts_,
                       recoveries_, fenced_, entries_, reads_);
  }

 private:
  struct Entry {
    uint64_t offset = 0;
    uint64_t size = 0;
    uint64_t content = 0;  // seed of its pattern
    bool synced = false;
  };
  struct File {
    std::string path;
    std::deque<Entry> acknowledged;
    uint64_t acknowledged_end = 0;
    uint64_t generation = 0;  // the highest that a completed open was given
    std::string seen;         // the longest content that any reader saw
  };

  static constexpr size_t kFiles = 2;
  static constexpr size_t kMaxSessions = 80;  // of one run: bounds its time
  static constexpr uint64_t kMaxFileBytes = 3 << 20;

  Task<> Append(Env* env, FileSystem* fs, File* file, size_t client);
  Task<> WriteEntries(Env* env, FileWriter* writer, File* file);
  Task<> Conflict(Env* env, FileSystem* fs, File* file);
  Task<> Read(FileSystem* fs, File* file, bool must);
  void Failed(File* file, const char* what, const Error& error);
  void Fail(const char* invariant, const File& file, std::string why) {
    in_.world->Fail(invariant, file.path + ": " + why);
  }

  const Surroundings in_;
  Rng rng_;
  std::deque<File> files_;
  uint64_t sessions_ = 0;
  uint64_t conflicts_ = 0;
  uint64_t recoveries_ = 0;
  uint64_t fenced_ = 0;
  uint64_t entries_ = 0;
  uint64_t reads_ = 0;
};

// What losing a contest may be told as.
bool ContestExplains(Code code) {
  return IsFenced(code) || code == Code::kNotLeaseHolder || code == Code::kLeaseConflict || code == Code::kSuperseded ||
         code == Code::kWaitingFor || code == Code::kConflict;
}

void Contest::Failed(File* file, const char* what, const Error& error) {
  in_.world->Note(nullptr, LogLevel::kInfo, fmt::format("{} of {} failed: {}", what, file->path, error.ToString()));
  if (IsFenced(error.code) || error.code == Code::kNotLeaseHolder) ++fenced_;
  const bool lost = error.code == Code::kIntegrity && in_.harm->MayLose(3, false);
  if (!FaultsExplain(error.code) && !ContestExplains(error.code) && !lost) {
    Fail("writer-error", *file, fmt::format("{}: {}", what, error.ToString()));
  }
}

Task<> Contest::Work(Env* env, FileSystem* fs, size_t client) {
  while (!stopping() && sessions_ + conflicts_ < kMaxSessions) {
    File* file = &files_[rng_.Below(kFiles)];
    if (rng_.Chance(0.25)) {
      co_await Read(fs, file, false);
    } else {
      co_await Append(env, fs, file, client);
    }
    co_await env->Sleep(std::chrono::milliseconds(rng_.Range(0, 2000)));
  }
}

Task<> Contest::Append(Env* env, FileSystem* fs, File* file, size_t client) {
  const uint64_t end_before = file->acknowledged_end;
  const uint64_t generation_before = file->generation;
  AppendFileOptions options;
  options.create = true;
  options.made.chunk_size = 1 << 20;
  options.made.sync = rng_.Chance(0.7);
  if (rng_.Chance(0.5)) options.session.writer_id = fmt::format("writer-{}", client);
  auto writer = co_await fs->OpenForAppend(file->path, options);
  if (!writer) {
    const Error error = std::move(writer).error();
    if (error.code == Code::kLeaseConflict) {
      co_await Conflict(env, fs, file);
    } else {
      Failed(file, "open", error);
    }
    co_return;
  }
  ++sessions_;
  const proto::FileStatus& status = (*writer)->status();
  if (status.length() < end_before && !in_.harm->MayLose(3, false)) {
    Fail("takeover", *file, fmt::format("opened at {} bytes, {} were acknowledged before", status.length(), end_before));
  }
  if (status.generation() <= generation_before) {
    Fail("generation", *file, fmt::format("opened under session {}, after {}", Generation(status.generation()).ToString(),
                                          Generation(generation_before).ToString()));
  }
  file->generation = std::max(file->generation, status.generation());
  if (status.length() < kMaxFileBytes) co_await WriteEntries(env, writer->get(), file);
  if (rng_.Chance(0.15)) co_return;  // walks away: the session stands until somebody claims it
  auto closed = co_await (*writer)->Close();
  if (!closed) Failed(file, "close", closed.error());
}

Task<> Contest::WriteEntries(Env* env, FileWriter* writer, File* file) {
  uint64_t at = writer->status().length();
  for (uint64_t n = rng_.Range(1, 5); n > 0 && !stopping(); --n) {
    Entry entry;
    entry.offset = at;
    entry.size = rng_.Chance(0.3) ? rng_.Range(1, 300'000) : rng_.Range(1, 3000);
    entry.content = rng_.Next();
    entry.synced = rng_.Chance(0.3);
    at += entry.size;
    auto written = co_await writer->Write(PatternBuffer(entry.content, entry.offset, entry.size));
    Status flushed = Status();
    if (written) {
      auto done = entry.synced ? co_await writer->Sync() : co_await writer->Flush();
      flushed = std::move(done);
    }
    if (!written || !flushed) {
      Failed(file, "append", written ? flushed.error() : written.error());
      // The first failure stands: nothing of this writer is taken any more.
      auto again = co_await writer->Write(PatternBuffer(1, at, 10));
      if (again) again = co_await writer->Flush();
      if (again) Fail("fence", *file, "a writer that had failed wrote on");
      co_return;
    }
    ++entries_;
    file->acknowledged.push_back(entry);
    file->acknowledged_end = std::max(file->acknowledged_end, at);
    if (rng_.Chance(0.3)) co_await env->Sleep(std::chrono::milliseconds(rng_.Range(0, 20'000)));
  }
}

Task<> Contest::Conflict(Env* env, FileSystem* fs, File* file) {
  ++conflicts_;
  if (rng_.Chance(0.5)) {
    co_await env->Sleep(std::chrono::milliseconds(rng_.Range(0, 10'000)));
    co_return;
  }
  auto recovered = co_await fs->RecoverLease(file->path, rng_.Chance(0.7));
  if (recovered) {
    ++recoveries_;
  } else {
    Failed(file, "recovery", recovered.error());
  }
}

Task<> Contest::Read(FileSystem* fs, File* file, bool must) {
  const uint64_t acknowledged = file->acknowledged_end;
  const bool excused = in_.harm->MayLose(3, false);
  auto reader = co_await fs->Open(file->path);
  std::string bytes;
  std::optional<Error> error;
  if (reader) {
    for (;;) {
      auto piece = co_await (*reader)->Read();
      if (!piece) {
        error = piece.error();
        break;
      }
      if (piece->empty()) break;
      bytes += piece->view();
    }
  } else {
    error = reader.error();
  }
  if (error) {
    const bool none_yet = error->code == Code::kNotFound && acknowledged == 0;
    if (must && !excused && !none_yet) Fail("read", *file, error->ToString());
    co_return;
  }
  ++reads_;
  if (bytes.size() < acknowledged && !excused && !in_.harm->MayLose(3, false)) {
    Fail("short-read", *file, fmt::format("{} bytes, {} were acknowledged before", bytes.size(), acknowledged));
  }
  const size_t common = std::min(bytes.size(), file->seen.size());
  if (bytes.compare(0, common, file->seen, 0, common) != 0 && !in_.harm->MayLose(3, false)) {
    Fail("read-vanished", *file, fmt::format("the first {} bytes are not those that were read before", common));
  }
  if (bytes.size() > file->seen.size() || in_.harm->MayLose(3, false)) file->seen = std::move(bytes);
}

Task<> Contest::Verify(Env*, FileSystem* fs) {
  for (File& file : files_) {
    // Whoever wrote last may have died with all the servers that kept its bytes: nobody's word is good then.
    auto recovered = co_await fs->RecoverLease(file.path, true);
    if (!recovered && recovered.error().code != Code::kNotFound && !in_.harm->MayLose(3, false)) {
      Fail("recovery", file, recovered.error().ToString());
    }
    co_await Read(fs, &file, true);
    for (const Entry& entry : file.acknowledged) {
      if (in_.harm->MayLose(3, entry.synced)) continue;
      if (file.seen.size() < entry.offset + entry.size) {
        Fail("acknowledged-gone", file, fmt::format("an entry that ends at {}, the file at {}", entry.offset + entry.size,
                                                    file.seen.size()));
        break;
      }
      const auto bytes = std::as_bytes(std::span(file.seen)).subspan(entry.offset, entry.size);
      if (auto wrong = PatternDiffers(entry.content, entry.offset, bytes)) {
        Fail("acknowledged-gone", file, fmt::format("byte {} of the acknowledged entry at {} differs", *wrong, entry.offset));
        break;
      }
    }
  }
}

}  // namespace

std::unique_ptr<Workload> MakeContest(const Surroundings& s) { return std::make_unique<Contest>(s); }

}  // namespace picket::sim
