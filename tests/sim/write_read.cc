// Clients create, write, flush, sync, close and read back files of known bytes.
//
//   a closed file      reads back whole and equal, for ever
//   an open file       what can be read of it is a prefix of what was written
//   a failed writer    failed for a reason that a fault can give; never for a fence or an inconsistency
#include <fmt/format.h>

#include <deque>

#include "tests/sim/pattern.h"
#include "tests/sim/workload.h"

namespace picket::sim {

namespace {

class WriteRead final : public Workload {
 public:
  explicit WriteRead(const Surroundings& s) : in_(s), rng_(s.world->Stream("write_read")) {}

  Task<> Work(Env* env, FileSystem* fs, size_t client) override;
  Task<> Verify(Env* env, FileSystem* fs) override;
  std::string Summary() const override {
    return fmt::format("files={} closed={} failed={} MiB={} reads={}", files_.size(), closed_, failed_,
                       bytes_ >> 20, reads_);
  }

 private:
  struct File {
    std::string path;
    uint64_t content = 0;
    uint32_t replication = 0;
    uint64_t chunk_size = 0;
    bool sync = true;
    uint64_t issued = 0;    // handed to Write
    uint64_t written = 0;   // taken by it
    uint64_t flushed = 0;   // acknowledged to the caller
    uint64_t synced = 0;
    bool open = true;       // being written, or given up in an unknown state
    bool abandoned = false;
  };

  static constexpr uint64_t kMiB = 1 << 20;
  static constexpr size_t kMaxFiles = 60;  // of one run: bounds its time

  File* NewFile(size_t client);
  uint64_t DrawSize(const File& file);
  Task<> WriteFile(Env* env, FileSystem* fs, File* file);
  Task<Status> WriteAll(Env* env, FileWriter* writer, File* file);
  // Fails the run when the bytes are wrong, or, with `must`, when they cannot be read.
  Task<> ReadFile(FileSystem* fs, File* file, bool must);
  void WriterFailed(File* file, const char* what, const Error& error);
  void Fail(const char* invariant, const File& file, std::string why) {
    in_.world->Fail(invariant, fmt::format("{} (chunks of {} MiB, {} replicas{}): {}", file.path,
                                           file.chunk_size >> 20, file.replication, file.sync ? "" : ", no sync", why));
  }

  const Surroundings in_;
  Rng rng_;
  std::deque<File> files_;
  uint64_t closed_ = 0;
  uint64_t failed_ = 0;
  uint64_t bytes_ = 0;
  uint64_t reads_ = 0;
};

WriteRead::File* WriteRead::NewFile(size_t client) {
  File file;
  file.path = fmt::format("/c{}-f{}", client, files_.size());
  file.content = rng_.Next();
  file.replication = rng_.Chance(0.8) ? 3 : static_cast<uint32_t>(rng_.Range(1, 2));
  file.chunk_size = rng_.Chance(0.7) ? kMiB : kMiB << rng_.Range(1, 6);
  file.sync = rng_.Chance(0.85);
  files_.push_back(std::move(file));
  return &files_.back();
}

uint64_t WriteRead::DrawSize(const File& file) {
  switch (rng_.Below(8)) {
    case 0: return 0;
    case 1: return 1;
    case 2: return std::min(file.chunk_size, 2 * kMiB);
    case 3: return file.chunk_size <= 2 * kMiB ? file.chunk_size + 1 : kMiB + 1;
    case 4: return rng_.Below(4 * kMiB);
    case 5: return 2 * kMiB + rng_.Below(200'000);
    default: return rng_.Below(600'000);
  }
}

Task<> WriteRead::Work(Env* env, FileSystem* fs, size_t client) {
  while (!stopping() && files_.size() < kMaxFiles) {
    File* file = NewFile(client);
    co_await WriteFile(env, fs, file);
    if (!file->abandoned && rng_.Chance(0.5)) co_await ReadFile(fs, file, false);
    if (rng_.Chance(0.5)) {
      File* other = &files_[rng_.Below(files_.size())];
      if (!other->abandoned) co_await ReadFile(fs, other, false);
    }
    co_await env->Sleep(std::chrono::milliseconds(rng_.Range(0, 3000)));
  }
}

void WriteRead::WriterFailed(File* file, const char* what, const Error& error) {
  ++failed_;
  in_.world->Note(nullptr, LogLevel::kInfo, fmt::format("{} of {} failed: {}", what, file->path, error.ToString()));
  // Everybody who had acknowledged bytes may have lost them: that must be said.
  const bool lost = error.code == Code::kIntegrity && in_.harm->MayLose(file->replication, false);
  if (!FaultsExplain(error.code) && !lost) Fail("writer-error", *file, fmt::format("{}: {}", what, error.ToString()));
}

Task<> WriteRead::WriteFile(Env* env, FileSystem* fs, File* file) {
  CreateFileOptions options;
  options.replication = file->replication;
  options.chunk_size = file->chunk_size;
  options.sync = file->sync;
  auto writer = co_await fs->Create(file->path, options);
  if (!writer) {
    WriterFailed(file, "create", writer.error());
    co_return;
  }
  auto written = co_await WriteAll(env, writer->get(), file);
  if (!written) {
    WriterFailed(file, "write", written.error());
    co_return;
  }
  if (rng_.Chance(0.05)) {
    file->abandoned = true;
    auto gone = co_await (*writer)->Abandon();
    if (!gone) WriterFailed(file, "abandon", gone.error());
    co_return;
  }
  auto status = co_await (*writer)->Close();
  if (!status) {
    WriterFailed(file, "close", status.error());
    co_return;
  }
  file->open = false;
  ++closed_;
  if (status->length() != file->written) {
    Fail("closed-length", *file, fmt::format("closed at {}, written {}", status->length(), file->written));
  }
}

Task<Status> WriteRead::WriteAll(Env* env, FileWriter* writer, File* file) {
  const uint64_t size = DrawSize(*file);
  const bool slow = rng_.Chance(0.3);
  while (file->written < size) {
    const uint64_t most = rng_.Chance(0.5) ? kMiB : 20'000;
    const size_t n = std::min(size - file->written, 1 + rng_.Below(most));
    Buffer bytes = PatternBuffer(file->content, file->written, n);
    file->issued = file->written + n;
    PICKET_CO_TRY(co_await writer->Write(bytes));
    file->written += n;
    bytes_ += n;
    if (rng_.Chance(0.15)) {
      PICKET_CO_TRY(co_await writer->Flush());
      file->flushed = file->written;
      if (writer->bytes_acknowledged() < file->written) {
        Fail("flush", *file, fmt::format("flushed at {}, acknowledged {}", file->written, writer->bytes_acknowledged()));
      }
    }
    if (rng_.Chance(0.1)) {
      PICKET_CO_TRY(co_await writer->Sync());
      file->flushed = file->synced = file->written;
    }
    if (slow) co_await env->Sleep(std::chrono::milliseconds(rng_.Range(0, 1500)));
  }
  co_return Status();
}

Task<> WriteRead::ReadFile(FileSystem* fs, File* file, bool must) {
  const bool whole = !file->open;
  const bool excused = !must || in_.harm->MayLose(file->replication, file->sync);
  auto reader = co_await fs->Open(file->path);
  if (!reader) {
    // A writer that has not got its answer yet may not have created it.
    if (!excused && whole) Fail("read", *file, "open: " + reader.error().ToString());
    if (whole && reader.error().code == Code::kNotFound) Fail("read", *file, "a closed file does not exist");
    co_return;
  }
  uint64_t at = 0;
  for (;;) {
    auto piece = co_await (*reader)->Read();
    if (!piece) {
      if (!excused && whole) Fail("read", *file, fmt::format("at {}: {}", at, piece.error().ToString()));
      co_return;
    }
    if (piece->empty()) break;
    if (auto wrong = PatternDiffers(file->content, at, piece->span())) {
      Fail("wrong-bytes", *file, fmt::format("byte {} differs from what was written", *wrong));
      co_return;
    }
    at += piece->size();
  }
  ++reads_;
  if (whole && at != file->written) Fail("short-read", *file, fmt::format("{} bytes of {}", at, file->written));
  if (at > file->issued) Fail("long-read", *file, fmt::format("{} bytes of {} written", at, file->issued));
}

Task<> WriteRead::Verify(Env*, FileSystem* fs) {
  for (File& file : files_) {
    if (!file.abandoned) co_await ReadFile(fs, &file, true);
  }
}

}  // namespace

std::unique_ptr<Workload> MakeWriteRead(const Surroundings& s) { return std::make_unique<WriteRead>(s); }

}  // namespace picket::sim
