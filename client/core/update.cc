#include "client/core/update.h"

#include "client/core/packet.h"
#include "common/base/mutation.h"
#include "common/rpc/retry.h"

namespace picket {
namespace {

constexpr RetryPolicy kRedo{.initial = 5ms, .max = 500ms};

// Somebody else changed the file between our reading and our writing, or is about to.
bool LostTheRace(Code code) {
  return code == Code::kConflict || code == Code::kAlreadyExists || code == Code::kLeaseConflict;
}

Task<Result<FileContent>> ReadContent(FileSystem* files, std::string path, uint64_t max_bytes) {
  FileContent content;
  auto reader = co_await files->Open(path);
  if (!reader) {
    if (reader.error().code == Code::kNotFound) co_return content;
    co_return Fail(std::move(reader).error());
  }
  content.exists = true;
  content.status = (*reader)->status();
  const uint64_t length = content.status.length();
  if (content.status.open()) {
    co_return Fail(Error(Code::kLeaseConflict, path + ": it is being written").WithHolder(content.status.holder()));
  }
  if (length > max_bytes) {
    co_return Fail(Code::kInvalidArgument, path + ": " + std::to_string(length) +
                                               " bytes are too many to be changed in memory; at most " +
                                               std::to_string(max_bytes));
  }
  auto bytes = co_await (*reader)->ReadAt(0, length);
  if (!bytes) {
    // They may be gone because the file was replaced meanwhile.
    auto now = co_await files->Stat(path);
    const bool changed = now ? now->mod_revision() != content.status.mod_revision()
                             : now.error().code == Code::kNotFound;
    if (changed) co_return Fail(Code::kConflict, path + ": it changed while it was read");
    co_return Fail(std::move(bytes).error());
  }
  content.bytes = std::string(bytes->view());
  co_return content;
}

// To be created in the place of what was read, as long as it is that.
CreateFileOptions InPlaceOf(const FileContent& read, CreateFileOptions create) {
  create.overwrite = read.exists;
  create.session.conditions.Clear();
  if (!read.exists) {
    create.session.conditions.set_if_absent(true);
    return create;
  }
  if (!PICKET_MUTANT(client_update_condition)) {
    create.session.conditions.set_if_version(read.status.mod_revision());
  }
  create.mode = read.status.mode();
  if (create.replication == 0) create.replication = read.status.replication();
  if (create.chunk_size == 0) create.chunk_size = read.status.chunk_size();
  return create;
}

Task<Result<proto::FileStatus>> Write(FileSystem* files, std::string path, std::string bytes,
                                      CreateFileOptions options) {
  auto created = co_await files->Create(path, options);
  if (!created) co_return Fail(std::move(created).error());
  FileWriter& writer = **created;
  Status written;
  for (size_t at = 0; written && at < bytes.size(); at += kMaxPacketSize) {
    written = co_await writer.Write(Buffer::Copy(std::string_view(bytes).substr(at, kMaxPacketSize)));
  }
  if (written) {
    auto closed = co_await writer.Close();
    if (closed) co_return closed;
    written = Fail(std::move(closed).error());
  }
  // What stays behind when this fails has no name of its own, and its session runs out.
  (void)co_await writer.Abandon();
  co_return Fail(std::move(written).error());
}

}  // namespace

Task<Status> Updater::Lost(Error error) {
  if (!LostTheRace(error.code)) co_return Fail(std::move(error));
  if (++attempts_ >= options_.max_attempts) {
    co_return Fail(std::move(error).WithNextStep("others change this file all the time; try again later"));
  }
  Env& env = files_->env();
  co_await env.Sleep(NextDelay(kRedo, attempts_, env.Random()));
  co_return Status();
}

Task<Result<FileContent>> Updater::Read() {
  while (true) {
    auto content = co_await ReadContent(files_, path_, options_.max_bytes);
    if (content) co_return content;
    PICKET_CO_TRY(co_await Lost(std::move(content).error()));
  }
}

Task<Result<std::optional<proto::FileStatus>>> Updater::Replace(FileContent read, std::string bytes) {
  auto replaced = co_await Write(files_, path_, std::move(bytes), InPlaceOf(read, options_.create));
  if (replaced) co_return std::move(*replaced);
  PICKET_CO_TRY(co_await Lost(std::move(replaced).error()));
  co_return std::nullopt;
}

Task<Result<proto::FileStatus>> Update(FileSystem* files, std::string path, UpdateFunction change,
                                       UpdateOptions options) {
  Updater updater(files, std::move(path), std::move(options));
  while (true) {
    auto content = co_await updater.Read();
    if (!content) co_return Fail(std::move(content).error());
    auto bytes = change(*content);
    if (!bytes) co_return Fail(std::move(bytes).error());
    if (!*bytes) co_return std::move(content->status);
    auto replaced = co_await updater.Replace(std::move(*content), std::move(**bytes));
    if (!replaced) co_return Fail(std::move(replaced).error());
    if (*replaced) co_return std::move(**replaced);
  }
}

}  // namespace picket
