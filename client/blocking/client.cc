#include "picket/client.h"

#include <charconv>
#include <exception>

#include "client/blocking/convert.h"
#include "client/blocking/error_map.h"
#include "client/blocking/lock.h"
#include "client/blocking/loop_thread.h"
#include "client/blocking/random_writer.h"
#include "client/blocking/reader.h"
#include "client/blocking/records.h"
#include "client/blocking/settings.h"
#include "client/blocking/writer.h"
#include "client/core/update.h"
#include "common/base/utf8.h"

namespace picket::client {
namespace {

class BlockingClient final : public Client {
 public:
  explicit BlockingClient(std::shared_ptr<LoopThread> loop)
      : loop_(std::move(loop)), master_(loop_->options().master.ToString()), user_(loop_->options().user) {}

  Result<std::unique_ptr<Writer>> Create(std::string_view path, const CreateOptions& options) override {
    auto file = Run<std::unique_ptr<FileWriter>>(
        path, [path = std::string(path), create = ToCore(options)](FileSystem& files) { return files.Create(path, create); });
    if (!file) return PublicFailure(file.error());
    return std::make_unique<BlockingWriter>(loop_, std::move(*file), std::string(path));
  }

  Result<std::unique_ptr<Reader>> Open(std::string_view path) override {
    auto file =
        Run<std::unique_ptr<FileReader>>(path, [path = std::string(path)](FileSystem& files) { return files.Open(path); });
    if (!file) return PublicFailure(file.error());
    return std::make_unique<BlockingReader>(loop_, std::move(*file), std::string(path));
  }

  Result<std::unique_ptr<Writer>> Append(std::string_view path, const AppendOptions& options) override {
    auto file = Run<std::unique_ptr<FileWriter>>(
        path, [path = std::string(path), append = ToCore(options)](FileSystem& files) {
          return files.OpenForAppend(path, append);
        });
    if (!file) return PublicFailure(file.error());
    return std::make_unique<BlockingWriter>(loop_, std::move(*file), std::string(path));
  }

  Result<std::unique_ptr<client::RandomWriter>> OpenForWrite(std::string_view path,
                                                             const AppendOptions& options) override {
    auto file = Run<std::unique_ptr<picket::RandomWriter>>(
        path, [path = std::string(path), append = ToCore(options)](FileSystem& files) {
          return files.OpenForWrite(path, append);
        });
    if (!file) return PublicFailure(file.error());
    return std::make_unique<BlockingRandomWriter>(loop_, std::move(*file), std::string(path));
  }

  Result<std::unique_ptr<client::RecordAppender>> AppendRecords(std::string_view path,
                                                                const AppendOptions& options) override {
    auto appender = Run<std::unique_ptr<picket::RecordAppender>>(
        path, [path = std::string(path), append = ToCore(options)](FileSystem& files) {
          return files.AppendRecords(path, append);
        });
    if (!appender) return PublicFailure(appender.error());
    return std::make_unique<BlockingRecordAppender>(loop_, std::move(*appender));
  }

  Result<std::unique_ptr<client::RecordReader>> ReadRecords(std::string_view path) override {
    auto reader = Run<std::unique_ptr<picket::RecordReader>>(
        path, [path = std::string(path)](FileSystem& files) { return files.ReadRecords(path); });
    if (!reader) return PublicFailure(reader.error());
    return std::make_unique<BlockingRecordReader>(loop_, std::move(*reader));
  }

  Result<std::unique_ptr<Lock>> TakeLock(std::string_view path, const client::LockOptions& options) override {
    picket::LockOptions lock{.shared = options.shared,
                             .wait = std::chrono::milliseconds(options.wait_ms),
                             .writer_id = options.writer_id,
                             .lock_delay_ms = options.lock_delay_ms};
    lock.limits.set_soft_ms(options.ttl_ms);
    auto taken = Run<std::shared_ptr<LockSession>>(
        path, [path = std::string(path), lock](FileSystem& files) { return files.Lock(path, lock); });
    if (!taken) return PublicFailure(taken.error());
    return std::make_unique<BlockingLock>(loop_, std::move(*taken), std::string(path));
  }

  Result<SequencerState> CheckSequencer(std::string_view text, std::string_view server) override {
    Endpoint endpoint;
    if (!server.empty()) {
      auto parsed = ParseEndpoint(server);
      if (!parsed) return PublicFailure(parsed.error());
      endpoint = std::move(*parsed);
    }
    auto answer = loop_->Run<picket::Result<proto::CheckSequencerResponse>>(
        [text = std::string(text), endpoint](FileSystem& files) { return files.CheckSequencer(text, endpoint); });
    if (!answer) return PublicFailure(answer.error());
    return ToPublic(*answer);
  }

  Result<FileStatus> Truncate(std::string_view path, uint64_t length, const client::TruncateOptions& options) override {
    picket::TruncateOptions truncate{.writer_id = options.writer_id, .conditions = ToProto(options.conditions)};
    return StatusFrom(path, [path = std::string(path), length, truncate](FileSystem& files) {
      return files.Truncate(path, length, truncate);
    });
  }

  Result<FileStatus> Concat(std::string_view target, const std::vector<std::string>& sources,
                            const Conditions& conditions) override {
    for (const std::string& source : sources) {
      if (!IsUtf8(source)) return PublicFailure(picket::Error(Code::kInvalidArgument, "a path is not valid UTF-8"));
    }
    return StatusFrom(target, [target = std::string(target), sources, c = ToProto(conditions)](FileSystem& files) {
      return files.Concat(target, sources, c);
    });
  }

  Result<FileStatus> Update(std::string_view path, const client::UpdateFunction& change,
                            const client::UpdateOptions& options) override {
    picket::UpdateOptions core{.create = ToCore(options.create),
                               .max_attempts = options.max_attempts,
                               .max_bytes = options.max_bytes};
    std::shared_ptr<Updater> updater;
    while (true) {
      auto read = Run<picket::FileContent>(path, [&, path = std::string(path)](FileSystem& files) {
        if (!updater) updater = std::make_shared<Updater>(&files, path, std::move(core));
        return updater->Read();
      });
      if (!read) return PublicFailure(read.error());
      client::FileContent content{read->exists, std::move(read->bytes), Public(read->status, std::string(path))};
      auto bytes = change(content);
      if (!bytes) return std::unexpected(bytes.error());
      if (!*bytes) return content.status;
      read->bytes.clear();
      auto replaced = Run<std::optional<proto::FileStatus>>(path, [&](FileSystem&) {
        return updater->Replace(std::move(*read), std::move(**bytes));
      });
      if (!replaced) return PublicFailure(replaced.error());
      if (*replaced) return Public(**replaced, std::string(path));
    }
  }

  Result<FileStatus> Stat(std::string_view path) override {
    return StatusFrom(path, [path = std::string(path)](FileSystem& files) { return files.Stat(path); });
  }

  Result<ListPage> List(std::string_view path, std::string_view start_after, uint32_t limit) override {
    auto answer = Run<proto::ListResponse>(
        path, [path = std::string(path), after = std::string(start_after), limit](FileSystem& files) {
          return files.List(path, after, limit);
        });
    if (!answer) return PublicFailure(answer.error());
    ListPage page;
    page.more = answer->more();
    page.is_file = answer->is_file();
    page.entries.reserve(static_cast<size_t>(answer->entries_size()));
    for (const auto& entry : answer->entries()) {
      page.entries.push_back(Public(entry, page.is_file ? std::string(path) : Join(path, entry.name())));
    }
    return page;
  }

  Result<FileStatus> Mkdir(std::string_view path, bool parents, uint32_t mode, const Conditions& conditions) override {
    return StatusFrom(path, [path = std::string(path), parents, mode, c = ToProto(conditions)](FileSystem& files) {
      return files.Mkdir(path, parents, mode, c);
    });
  }

  Result<> Rename(std::string_view from, std::string_view to, bool overwrite, const Conditions& conditions) override {
    if (!IsUtf8(to)) return PublicFailure(picket::Error(Code::kInvalidArgument, "the new path is not valid UTF-8"));
    auto done = Run<void>(from, [from = std::string(from), to = std::string(to), overwrite,
                                 c = ToProto(conditions)](FileSystem& files) {
      return files.Rename(from, to, overwrite, c);
    });
    if (!done) return PublicFailure(done.error());
    return {};
  }

  Result<std::string> Remove(std::string_view path, const client::RemoveOptions& options) override {
    picket::RemoveOptions remove{.recursive = options.recursive,
                                 .skip_trash = options.skip_trash,
                                 .only_inode = {},
                                 .conditions = ToProto(options.conditions)};
    auto where = Run<std::string>(
        path, [path = std::string(path), remove](FileSystem& files) { return files.Remove(path, remove); });
    if (!where) return PublicFailure(where.error());
    return std::move(*where);
  }

  Result<FileStatus> SetTimes(std::string_view path, int64_t mtime_ns, const Conditions& conditions) override {
    return StatusFrom(path, [path = std::string(path), mtime_ns, c = ToProto(conditions)](FileSystem& files) {
      return files.SetTime(path, mtime_ns, c);
    });
  }
  Result<FileStatus> SetMode(std::string_view path, uint32_t mode, const Conditions& conditions) override {
    return StatusFrom(path, [path = std::string(path), mode, c = ToProto(conditions)](FileSystem& files) {
      return files.SetMode(path, mode, c);
    });
  }
  Result<FileStatus> SetOwner(std::string_view path, std::string_view owner, std::string_view group,
                              const Conditions& conditions) override {
    return StatusFrom(path, [path = std::string(path), owner = std::string(owner), group = std::string(group),
                             c = ToProto(conditions)](FileSystem& files) {
      return files.SetOwner(path, owner, group, c);
    });
  }

  Result<client::Summary> Summarize(std::string_view path) override {
    auto answer =
        Run<proto::SummaryResponse>(path, [path = std::string(path)](FileSystem& files) { return files.Summary(path); });
    if (!answer) return PublicFailure(answer.error());
    return client::Summary{answer->directories(), answer->files(), answer->bytes(), answer->bytes_with_replicas()};
  }

  Result<std::vector<ChunkInfo>> Chunks(std::string_view path) override {
    auto answer = Run<std::vector<proto::ChunkLocation>>(
        path, [path = std::string(path)](FileSystem& files) { return files.Chunks(path); });
    if (!answer) return PublicFailure(answer.error());
    std::vector<ChunkInfo> chunks;
    for (const auto& chunk : *answer) chunks.push_back(Public(chunk, std::string(path)));
    return chunks;
  }

  Result<ChunkInfo> DescribeChunk(uint64_t id) override {
    auto answer =
        Run<proto::DescribeChunkResponse>([id](FileSystem& files) { return files.DescribeChunk(ChunkId(id)); });
    if (!answer) return PublicFailure(answer.error());
    return Public(answer->chunk(), answer->path());
  }

  Result<ClusterInfo> Report() override {
    auto answer = Run<proto::ClusterReportResponse>([](FileSystem& files) { return files.Report(); });
    if (!answer) return PublicFailure(answer.error());
    return Public(*answer, master_);
  }

  Result<std::vector<client::LeaseInfo>> Leases(std::string_view under) override {
    auto answer = Run<std::vector<proto::LeaseInfo>>(
        under, [under = std::string(under)](FileSystem& files) { return files.ListLeases(under); });
    if (!answer) return PublicFailure(answer.error());
    std::vector<client::LeaseInfo> leases;
    for (const auto& lease : *answer) leases.push_back(Public(lease));
    return leases;
  }

  Result<LeaseState> ShowLease(std::string_view path) override {
    auto answer = Run<proto::ShowLeaseResponse>(
        path, [path = std::string(path)](FileSystem& files) { return files.ShowLease(path); });
    if (!answer) return PublicFailure(answer.error());
    return LeaseState{.open = answer->open(),
                      .lease = Public(answer->lease()),
                      .status = Public(answer->status(), std::string(path)),
                      .lock_delay_left_ms = answer->lock_delay_left_ms()};
  }

  Result<Recovered> RecoverLease(std::string_view path, bool wait) override {
    auto answer = Run<proto::RecoverLeaseResponse>(
        path, [path = std::string(path), wait](FileSystem& files) { return files.RecoverLease(path, wait); });
    if (!answer) return PublicFailure(answer.error());
    return Recovered{.closed = answer->closed(),
                     .generation = answer->generation(),
                     .status = Public(answer->status(), std::string(path))};
  }

  Result<std::vector<client::QuarantineEntry>> ListQuarantine(std::string_view server) override {
    return Quarantine(proto::QuarantineRequest::LIST, server, {}, false);
  }
  Result<std::vector<client::QuarantineEntry>> RestoreQuarantine(std::string_view server,
                                                                 const std::vector<std::string>& names) override {
    return Quarantine(proto::QuarantineRequest::RESTORE, server, names, false);
  }
  Result<std::vector<client::QuarantineEntry>> PurgeQuarantine(std::string_view server,
                                                               const std::vector<std::string>& names,
                                                               bool force) override {
    return Quarantine(proto::QuarantineRequest::PURGE, server, names, force);
  }

  Result<AdoptReport> Adopt(bool discard, bool dry_run, const std::vector<uint64_t>& chunks) override {
    proto::AdoptRequest request;
    request.set_discard(discard);
    request.set_dry_run(dry_run);
    for (const uint64_t chunk : chunks) request.add_chunks(chunk);
    auto answer = Run<proto::AdoptResponse>([request](FileSystem& files) { return files.Adopt(request); });
    if (!answer) return PublicFailure(answer.error());
    return Public(*answer);
  }

  const std::string& master() const override { return master_; }
  const std::string& user() const override { return user_; }

 private:
  Result<std::vector<client::QuarantineEntry>> Quarantine(proto::QuarantineRequest::Action action,
                                                          std::string_view server,
                                                          const std::vector<std::string>& names, bool force) {
    uint64_t id = 0;
    const auto [end, bad] = std::from_chars(server.data(), server.data() + server.size(), id, 16);
    if (server.size() != 16 || bad != std::errc() || end != server.data() + server.size()) {
      return PublicFailure(picket::Error(Code::kInvalidArgument, std::string(server) + ": not the id of a server")
                               .WithNextStep("16 hex digits, as in: picket admin report"));
    }
    proto::QuarantineRequest request;
    request.set_server(id);
    request.set_action(action);
    for (const std::string& name : names) request.add_entries(name);
    request.set_force(force);
    auto answer = Run<proto::QuarantineResponse>([request](FileSystem& files) { return files.Quarantine(request); });
    if (!answer) return PublicFailure(answer.error());
    return Public(*answer);
  }

  template <class T, class Make>
  picket::Result<T> Run(Make make) {
    return loop_->Run<picket::Result<T>>(std::move(make));
  }
  // A path that is not UTF-8 is refused here: no message can carry it.
  template <class T, class Make>
  picket::Result<T> Run(std::string_view path, Make make) {
    if (!IsUtf8(path)) return Fail(Code::kInvalidArgument, "the path is not valid UTF-8");
    return Run<T>(std::move(make));
  }
  template <class Make>
  Result<FileStatus> StatusFrom(std::string_view path, Make make) {
    auto status = Run<proto::FileStatus>(path, std::move(make));
    if (!status) return PublicFailure(status.error());
    return Public(*status, std::string(path));
  }

  const std::shared_ptr<LoopThread> loop_;
  const std::string master_;
  const std::string user_;
};

}  // namespace

Result<std::unique_ptr<Client>> Client::Connect(const Options& options) {
  auto settings = ResolveSettings(options);
  if (!settings) return PublicFailure(settings.error());
  std::shared_ptr<LoopThread> loop;
  try {
    loop = std::make_shared<LoopThread>(std::move(*settings));
  } catch (const std::exception& e) {
    return PublicFailure(picket::Error(Code::kUnavailable, std::string("the client cannot start its thread: ") + e.what()));
  }
  auto reached = loop->Run<Status>([](FileSystem& files) { return files.Connect(); });
  if (!reached) return PublicFailure(reached.error());
  return std::make_unique<BlockingClient>(std::move(loop));
}

}  // namespace picket::client
