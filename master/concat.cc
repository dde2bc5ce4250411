#include "master/concat.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "common/base/mutation.h"
#include "master/conditions.h"
#include "master/file_limits.h"

namespace picket {
namespace {

Error Breaks(const Path& path, std::string rule) {
  return Error(Code::kInvalidArgument, fmt::format("{} {}", path.Quoted(), rule));
}

Status CheckFull(const Path& path, const Entry& file) {
  const uint64_t rest = file.inode.length() % file.inode.chunk_size();
  if (rest == 0 || PICKET_MUTANT(concat_full)) return {};
  return Fail(Breaks(path, fmt::format("ends {} bytes into a chunk of {}: only the last source may", rest,
                                       file.inode.chunk_size()))
                  .WithNextStep("put it last, or copy its content instead"));
}

}  // namespace

void Concat::Register(RpcServer* server) {
  server->Handle<proto::ConcatRequest, proto::ConcatResponse>(proto::CONCAT, [this](auto request, Mono) {
    return changes_.Run<proto::ConcatRequest, proto::ConcatResponse>(
        std::move(request), proto::CONCAT, [this](const auto& r, Batch* batch) { return Change(r, batch); });
  });
}

Result<Entry> Concat::File(const Path& path) const {
  PICKET_TRY(CheckOutsideTrash(path));
  auto file = names_.Resolve(path);
  if (!file) return Fail(file.error());
  if (file->is_directory()) return Fail(Code::kIsDirectory, fmt::format("{} is a directory", path.Quoted()));
  const auto session = sessions_.Find(file->id);
  if (!session || PICKET_MUTANT(concat_closed)) return file;
  return Fail(Error(Code::kLeaseConflict, fmt::format("{} is not closed: client {} holds it in session {}", path.Quoted(),
                                                      ToString(session->holder()), session->generation.ToString()))
                  .WithTokens(0, session->generation.value)
                  .WithHolder(ToString(session->holder()))
                  .WithNextStep(fmt::format("wait until it is closed, or take it from its holder: picket lease recover {}",
                                            path.ToString())));
}

Status Concat::CheckSource(const Path& path, const Entry& source, const Path& target_path, const Entry& target) const {
  if (source.inode.chunk_size() != target.inode.chunk_size()) {
    return Fail(Breaks(path, fmt::format("has chunks of {} bytes, {} of {}", source.inode.chunk_size(),
                                         target_path.Quoted(), target.inode.chunk_size()))
                    .WithNextStep("copy its content instead"));
  }
  if (source.inode.replication() != target.inode.replication()) {
    return Fail(Breaks(path, fmt::format("has a replication of {}, {} of {}", source.inode.replication(),
                                         target_path.Quoted(), target.inode.replication()))
                    .WithNextStep("copy its content instead"));
  }
  return {};
}

Result<proto::ConcatResponse> Concat::Change(const proto::ConcatRequest& request, Batch* batch) {
  auto target_path = Path::Parse(request.target());
  if (!target_path) return Fail(target_path.error());
  auto present = names_.Find(*target_path);
  if (!present) return Fail(present.error());
  PICKET_TRY(CheckConditions(request.conditions(), *target_path, *present ? &**present : nullptr,
                             *present && files_.InChange((*present)->id)));
  auto target = File(*target_path);
  if (!target) return Fail(target.error());
  if (request.sources().empty()) return Fail(Code::kInvalidArgument, "no source to concatenate is named");
  if (static_cast<size_t>(request.sources_size()) > kMaxSources) {
    return Fail(Code::kInvalidArgument,
                fmt::format("{} sources at once; the limit is {}", request.sources_size(), kMaxSources));
  }
  struct Source {
    Path path;
    Entry entry;
    std::vector<ChunkRow> chunks;
  };
  std::vector<Source> sources;
  std::set<InodeId> named{target->id};
  std::vector<Entry> directories;
  size_t moved = 0;
  for (const std::string& text : request.sources()) {
    auto path = Path::Parse(text);
    if (!path) return Fail(path.error());
    auto file = File(*path);
    if (!file) return Fail(file.error());
    if (file->id == target->id) return Fail(Breaks(*path, "is the target and cannot be a source too"));
    if (!named.insert(file->id).second) return Fail(Breaks(*path, "is named twice"));
    PICKET_TRY(CheckSource(*path, *file, *target_path, *target));
    PICKET_TRY(sources.empty() ? CheckFull(*target_path, *target) : CheckFull(sources.back().path, sources.back().entry));
    auto chunks = chunks_.OfFile(file->id, 0, kMaxChunks - moved + 1);
    if (!chunks) return Fail(chunks.error());
    moved += chunks->size();
    if (moved > kMaxChunks) {
      return Fail(Error(Code::kInvalidArgument, fmt::format("up to {} there are more than {} chunks to move at once",
                                                            path->Quoted(), kMaxChunks))
                      .WithNextStep("concatenate fewer sources at a time"));
    }
    if (sources.empty() || file->inode.parent() != sources.back().entry.inode.parent()) {
      auto directory = names_.Get(InodeId(file->inode.parent()));
      if (!directory) return Fail(directory.error());
      directories.push_back(std::move(*directory));
    }
    sources.push_back(Source{std::move(*path), std::move(*file), std::move(*chunks)});
  }

  // Nothing can fail from here on.
  for (Entry& directory : directories) names_.Touch(batch, &directory);
  record::Inode& end = target->inode;
  for (Source& source : sources) {
    const uint64_t base = (end.length() + end.chunk_size() - 1) / end.chunk_size();
    for (ChunkRow& chunk : source.chunks) chunks_.Move(batch, chunk.id, std::move(chunk.record), target->id, base);
    end.set_length(base * end.chunk_size() + source.entry.inode.length());
    if (source.entry.inode.chunk_count() > 0) end.set_chunk_count(base + source.entry.inode.chunk_count());
    end.set_stored_bytes(end.stored_bytes() + source.entry.inode.stored_bytes());
    purge_.Add(batch, std::move(source.entry));
  }
  end.set_mtime_ns(env_.WallNanos());
  names_.PutInode(batch, &*target);
  proto::ConcatResponse response;
  *response.mutable_status() = files_.StatusOf(*target);
  return response;
}

}  // namespace picket
