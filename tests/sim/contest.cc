// Writers contest a few files: they append, overwrite and truncate under sessions of their own, half of them with
// limits that a stalled process outlasts; take over from each other by claims, recoveries and their writer ids,
// stall in mid-write, and come back late.
//
//   an acknowledged byte    is at its offset until a later write or a truncation, whoever took over
//   a takeover              begins at or after the end of all that was acknowledged, under a higher generation
//   a writer that failed    stays failed: not a byte of it is taken afterwards
//   a reader                sees every byte that was acknowledged before it began, and none that vanishes later
#include <fmt/format.h>

#include <deque>

#include "client/core/random_writer.h"
#include "tests/sim/byte_model.h"
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
    return fmt::format("sessions={} conflicts={} recoveries={} fenced={} entries={} overwrites={} cuts={} reads={}",
                       sessions_, conflicts_, recoveries_, fenced_, entries_, overwrites_, cuts_, reads_);
  }

 private:
  struct File {
    std::string path;
    ByteModel model;
    uint64_t generation = 0;  // the highest that a completed open was given
    // What an open, a close or a recovery has told everybody. Beyond it, a reader that cannot reach an open chunk's
    // primary gets what the other members have heard to be acknowledged.
    uint64_t settled = 0;
    std::string seen;  // the longest content that any reader saw since `seen_changes`
    uint64_t seen_changes = 0;
  };

  static constexpr size_t kFiles = 2;
  static constexpr size_t kMaxSessions = 80;  // of one run: bounds its time
  static constexpr uint64_t kMaxFileBytes = 2 << 20;

  Task<> Append(Env* env, FileSystem* fs, File* file, size_t client);
  Task<> WriteEntries(Env* env, FileWriter* writer, File* file);
  Task<> Overwrite(Env* env, FileSystem* fs, File* file, size_t client);
  Task<> Truncate(FileSystem* fs, File* file);
  AppendFileOptions Options(size_t client);
  // What every completed open promises.
  struct Before {
    explicit Before(const File& file) : end(file.model.end()), cuts(file.model.cuts()), generation(file.generation) {}
    uint64_t end;
    uint64_t cuts;
    uint64_t generation;
  };
  void Opened(File* file, const proto::FileStatus& status, const Before& before);
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
  uint64_t overwrites_ = 0;
  uint64_t cuts_ = 0;
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
    const uint64_t dice = rng_.Below(100);
    if (dice < 25) {
      co_await Read(fs, file, false);
    } else if (dice < 32) {
      co_await Truncate(fs, file);
    } else if (dice < 50) {
      co_await Overwrite(env, fs, file, client);
    } else {
      co_await Append(env, fs, file, client);
    }
    co_await env->Sleep(std::chrono::milliseconds(rng_.Range(0, 2000)));
  }
}

AppendFileOptions Contest::Options(size_t client) {
  AppendFileOptions options;
  options.create = true;
  options.made.chunk_size = 1 << 20;
  options.made.sync = rng_.Chance(0.7);
  if (rng_.Chance(0.5)) options.session.writer_id = fmt::format("writer-{}", client);
  if (rng_.Chance(0.5)) {
    options.session.limits.set_soft_ms(static_cast<uint32_t>(rng_.Range(5'000, 20'000)));
    options.session.limits.set_hard_ms(static_cast<uint32_t>(rng_.Range(20'000, 90'000)));
  }
  return options;
}

void Contest::Opened(File* file, const proto::FileStatus& status, const Before& before) {
  ++sessions_;
  const uint64_t promised = before.cuts == file->model.cuts() ? std::min(before.end, file->model.end()) : 0;
  if (status.length() < promised && !in_.harm->MayLose(3, false)) {
    Fail("takeover", *file, fmt::format("opened at {} bytes, {} were acknowledged before", status.length(), promised));
  }
  if (status.generation() <= before.generation) {
    Fail("generation", *file,
         fmt::format("opened under session {}, after {}", Generation(status.generation()).ToString(),
                     Generation(before.generation).ToString()));
  }
  file->generation = std::max(file->generation, status.generation());
  file->settled = std::min(status.length(), file->model.end());
}

Task<> Contest::Append(Env* env, FileSystem* fs, File* file, size_t client) {
  const Before before(*file);
  auto writer = co_await fs->OpenForAppend(file->path, Options(client));
  if (!writer) {
    const Error error = std::move(writer).error();
    if (error.code == Code::kLeaseConflict) {
      co_await Conflict(env, fs, file);
    } else {
      Failed(file, "open", error);
    }
    co_return;
  }
  Opened(file, (*writer)->status(), before);
  if ((*writer)->status().length() < kMaxFileBytes) co_await WriteEntries(env, writer->get(), file);
  if (rng_.Chance(0.15)) co_return;  // walks away: the session stands until somebody claims it
  auto closed = co_await (*writer)->Close();
  if (!closed) Failed(file, "close", closed.error());
}

Task<> Contest::WriteEntries(Env* env, FileWriter* writer, File* file) {
  uint64_t at = writer->status().length();
  for (uint64_t n = rng_.Range(1, 5); n > 0 && !stopping(); --n) {
    const uint64_t size = rng_.Chance(0.3) ? rng_.Range(1, 300'000) : rng_.Range(1, 3000);
    const bool sync = rng_.Chance(0.3);
    Buffer bytes = PatternBuffer(rng_.Next(), at, size);
    const uint32_t write = file->model.Begin(at, size);
    auto written = co_await writer->Write(bytes);
    Status flushed = Status();
    if (written) {
      auto done = sync ? co_await writer->Sync() : co_await writer->Flush();
      flushed = std::move(done);
    }
    if (!written || !flushed) {
      Failed(file, "append", written ? flushed.error() : written.error());
      // The first failure stands: nothing of this writer is taken any more.
      auto again = co_await writer->Write(PatternBuffer(1, at + size, 10));
      if (again) again = co_await writer->Flush();
      if (again) Fail("fence", *file, "a writer that had failed wrote on");
      co_return;
    }
    ++entries_;
    file->model.Acknowledge(write, at, bytes.view(), sync);
    at += size;
    if (rng_.Chance(0.3)) co_await env->Sleep(std::chrono::milliseconds(rng_.Range(0, 20'000)));
  }
}

Task<> Contest::Overwrite(Env* env, FileSystem* fs, File* file, size_t client) {
  const Before before(*file);
  auto writer = co_await fs->OpenForWrite(file->path, Options(client));
  if (!writer) {
    const Error error = std::move(writer).error();
    if (error.code == Code::kLeaseConflict) {
      co_await Conflict(env, fs, file);
    } else {
      Failed(file, "open for writing", error);
    }
    co_return;
  }
  Opened(file, (*writer)->status(), before);
  uint64_t end = (*writer)->status().length();
  for (uint64_t n = rng_.Range(1, 4); n > 0 && !stopping(); --n) {
    const bool sync = rng_.Chance(0.3);
    const uint64_t size = rng_.Chance(0.3) ? rng_.Range(1, 200'000) : rng_.Range(1, 3000);
    const uint64_t offset = std::min<uint64_t>(rng_.Below(end + (rng_.Chance(0.1) ? 100'000 : 1)), kMaxFileBytes);
    Buffer bytes = PatternBuffer(rng_.Next(), offset, size);
    // What lies between the end and the offset reads as zeros from then on.
    const uint64_t hole = offset > end ? offset - end : 0;
    const uint32_t zeros = hole > 0 ? file->model.Begin(end, hole) : 0;
    const uint32_t write = file->model.Begin(offset, size);
    auto written = co_await (*writer)->WriteAt(offset, bytes);
    if (written) {
      auto done = sync ? co_await (*writer)->Sync() : co_await (*writer)->Flush();
      written = std::move(done);
    }
    if (!written) {
      Failed(file, "overwrite", written.error());
      auto again = co_await (*writer)->WriteAt(0, PatternBuffer(1, 0, 10));
      if (again) again = co_await (*writer)->Flush();
      if (again) Fail("fence", *file, "a writer that had failed wrote on");
      co_return;
    }
    ++overwrites_;
    if (hole > 0) file->model.Acknowledge(zeros, end, std::string(hole, '\0'), sync);
    file->model.Acknowledge(write, offset, bytes.view(), sync);
    end = std::max(end, offset + size);
    if (rng_.Chance(0.2)) co_await env->Sleep(std::chrono::milliseconds(rng_.Range(0, 20'000)));
  }
  if (rng_.Chance(0.15)) co_return;
  auto closed = co_await (*writer)->Close();
  if (!closed) Failed(file, "close", closed.error());
}

Task<> Contest::Truncate(FileSystem* fs, File* file) {
  const uint64_t end = file->model.end();
  if (end == 0) co_return;
  const uint64_t length = end - rng_.Below(std::min<uint64_t>(end, rng_.Chance(0.3) ? end : 5000) + 1);
  file->model.BeginCut(length);
  auto cut = co_await fs->Truncate(file->path, length, {});
  if (cut) {
    ++cuts_;
    file->model.EndCut(length, true);
    co_return;
  }
  const Code code = cut.error().code;
  const bool refused = code == Code::kLeaseConflict || code == Code::kInvalidArgument || code == Code::kNotFound;
  file->model.EndCut(length, refused ? std::optional(false) : std::nullopt);
  if (code != Code::kInvalidArgument) Failed(file, "truncation", cut.error());
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
  const uint64_t end = file->model.end();
  const uint64_t settled = must ? end : file->settled;
  const ByteModel::Promise before = file->model.Now();
  const uint64_t changes = file->model.changes();
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
    const bool none_yet = error->code == Code::kNotFound && end == 0;
    if (must && !excused && !none_yet) Fail("read", *file, error->ToString());
    co_return;
  }
  ++reads_;
  const auto may_lose = [this](bool synced) { return in_.harm->MayLose(3, synced); };
  const auto wrong = file->model.Differs(before, bytes, may_lose);
  if (wrong && (*wrong < bytes.size() || *wrong < settled)) {
    Fail("acknowledged-gone", *file,
         fmt::format("byte {} of {} read is not what was acknowledged before", *wrong, bytes.size()));
  }
  // Nothing that a reader saw vanishes, acknowledged or not.
  if (file->model.changes() != changes) co_return;
  if (file->seen_changes != changes || may_lose(false)) file->seen.clear();
  const size_t common = std::min(bytes.size(), file->seen.size());
  const bool same = bytes.compare(0, common, file->seen, 0, common) == 0;
  for (size_t at = 0; !same && at < common; ++at) {
    if (bytes[at] == file->seen[at] || file->model.either(at)) continue;
    Fail("read-vanished", *file, fmt::format("byte {} is not the one that was read before", at));
    break;
  }
  file->seen_changes = changes;
  if (bytes.size() > file->seen.size()) file->seen = std::move(bytes);
}

Task<> Contest::Verify(Env*, FileSystem* fs) {
  for (File& file : files_) {
    // Whoever wrote last may have died with all the servers that kept its bytes: nobody's word is good then.
    auto recovered = co_await fs->RecoverLease(file.path, true);
    if (!recovered && recovered.error().code != Code::kNotFound && !in_.harm->MayLose(3, false)) {
      Fail("recovery", file, recovered.error().ToString());
    }
    co_await Read(fs, &file, true);
  }
}

}  // namespace

std::unique_ptr<Workload> MakeContest(const Surroundings& s) { return std::make_unique<Contest>(s); }

}  // namespace picket::sim
