#include "picket/client.h"

#include <exception>

#include "client/blocking/convert.h"
#include "client/blocking/error_map.h"
#include "client/blocking/loop_thread.h"
#include "client/blocking/reader.h"
#include "client/blocking/settings.h"
#include "client/blocking/writer.h"
#include "common/base/utf8.h"

namespace picket::client {
namespace {

class BlockingClient final : public Client {
 public:
  explicit BlockingClient(std::shared_ptr<LoopThread> loop)
      : loop_(std::move(loop)), master_(loop_->options().master.ToString()), user_(loop_->options().user) {}

  Result<std::unique_ptr<Writer>> Create(std::string_view path, const CreateOptions& options) override {
    CreateFileOptions create{.overwrite = options.overwrite,
                             .parents = options.parents,
                             .mode = options.mode,
                             .replication = options.replication,
                             .chunk_size = options.chunk_size,
                             .mtime_ns = options.mtime_ns,
                             .sync = options.sync_on_close};
    auto file = Run<std::unique_ptr<FileWriter>>(
        path, [path = std::string(path), create](FileSystem& files) { return files.Create(path, create); });
    if (!file) return PublicFailure(file.error());
    return std::make_unique<BlockingWriter>(loop_, std::move(*file), std::string(path));
  }

  Result<std::unique_ptr<Reader>> Open(std::string_view path) override {
    auto file =
        Run<std::unique_ptr<FileReader>>(path, [path = std::string(path)](FileSystem& files) { return files.Open(path); });
    if (!file) return PublicFailure(file.error());
    return std::make_unique<BlockingReader>(loop_, std::move(*file), std::string(path));
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

  Result<FileStatus> Mkdir(std::string_view path, bool parents, uint32_t mode) override {
    return StatusFrom(path, [path = std::string(path), parents, mode](FileSystem& files) {
      return files.Mkdir(path, parents, mode);
    });
  }

  Result<> Rename(std::string_view from, std::string_view to, bool overwrite) override {
    if (!IsUtf8(to)) return PublicFailure(picket::Error(Code::kInvalidArgument, "the new path is not valid UTF-8"));
    auto done = Run<void>(from, [from = std::string(from), to = std::string(to), overwrite](FileSystem& files) {
      return files.Rename(from, to, overwrite);
    });
    if (!done) return PublicFailure(done.error());
    return {};
  }

  Result<std::string> Remove(std::string_view path, bool recursive, bool skip_trash) override {
    auto where = Run<std::string>(path, [path = std::string(path), recursive, skip_trash](FileSystem& files) {
      return files.Remove(path, recursive, skip_trash);
    });
    if (!where) return PublicFailure(where.error());
    return std::move(*where);
  }

  Result<FileStatus> SetTimes(std::string_view path, int64_t mtime_ns) override {
    return StatusFrom(path,
                  [path = std::string(path), mtime_ns](FileSystem& files) { return files.SetTime(path, mtime_ns); });
  }
  Result<FileStatus> SetMode(std::string_view path, uint32_t mode) override {
    return StatusFrom(path, [path = std::string(path), mode](FileSystem& files) { return files.SetMode(path, mode); });
  }
  Result<FileStatus> SetOwner(std::string_view path, std::string_view owner, std::string_view group) override {
    return StatusFrom(path, [path = std::string(path), owner = std::string(owner),
                         group = std::string(group)](FileSystem& files) { return files.SetOwner(path, owner, group); });
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

  const std::string& master() const override { return master_; }
  const std::string& user() const override { return user_; }

 private:
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
