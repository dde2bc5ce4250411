#include "client/core/chunk_reader.h"

#include <algorithm>

#include "client/core/block_check.h"
#include "common/base/mutation.h"
#include "common/obs/log.h"
#include "common/rpc/retry.h"

namespace picket {
namespace {

constexpr RetryPolicy kRounds{.initial = 200ms, .max = 2s};

// Says something about the server rather than about what was asked.
bool Disappointing(Code code) {
  return code == Code::kUnavailable || code == Code::kDeadlineExceeded || code == Code::kConnectionLost ||
         code == Code::kCorrupt || code == Code::kIoError;
}

std::string Label(const ReplicaPlace& replica) {
  return ToString(replica.server) + " (" + replica.endpoint.ToString() + ")";
}

}  // namespace

ChunkReader::ChunkReader(Env& env, std::shared_ptr<MasterClient> master, Nanos master_patience)
    : env_(env), master_(std::move(master)), master_patience_(master_patience), channels_(env) {}

// ---- where it is -----------------------------------------------------------------------------------

Task<Result<proto::GetFileResponse>> ChunkReader::Locate(std::string path, InodeId inode, uint64_t first_index,
                                                         uint32_t limit) {
  proto::GetFileRequest request;
  if (path.empty()) {
    request.set_inode(inode.value);
  } else {
    request.set_path(std::move(path));
  }
  request.set_first_index(first_index);
  request.set_limit(limit);
  request.set_all_replicas(true);  // an error should say what became of those that do not count
  auto file = co_await master_->Read<proto::GetFileResponse>(proto::GET_FILE, request, env_.Now() + master_patience_);
  if (file) {
    for (auto& place : PlacesOf(*file)) cache_.Put(InodeId(file->status().inode()), std::move(place));
  }
  co_return file;
}

Task<Result<ChunkPlace>> ChunkReader::Find(std::shared_ptr<ChunkReader> self, InodeId inode, uint64_t index,
                                           Mono deadline, bool* cached) {
  auto known = self->cache_.Find(inode, index);
  *cached = known.has_value();
  if (known) co_return std::move(*known);
  proto::GetFileRequest request;
  request.set_inode(inode.value);
  request.set_first_index(index);
  request.set_limit(kLocatePage);
  request.set_all_replicas(true);
  auto file = co_await self->master_->Read<proto::GetFileResponse>(proto::GET_FILE, request, deadline);
  if (!file) co_return Fail(std::move(file).error());
  std::optional<ChunkPlace> found;
  for (auto& place : PlacesOf(*file)) {
    if (place.index == index) found = place;
    self->cache_.Put(inode, std::move(place));
  }
  if (found) co_return std::move(*found);
  const auto& status = file->status();
  const bool inside = file->chunks_size() > 0 || status.length() > index * status.chunk_size();
  if (!inside) co_return Fail(Code::kNotFound, "file " + ToString(inode) + " has no chunk " + std::to_string(index));
  // A hole, which may be written at any time: not remembered.
  co_return ChunkPlace{.index = index};
}

// True if the chunk ends where the answer says and the file does not: the rest is a hole.
bool ChunkReader::EndsThere(const Race& race, ServerId from, const proto::ReadResponse& answer) {
  const ChunkPlace& place = race.place;
  if (PICKET_MUTANT(client_hole_end)) return true;
  const bool lagging = race.least > 0 && answer.readable_length() < race.offset + race.least;
  if (race.offset + race.size > place.extent || lagging) return false;
  if (place.sealed) return answer.readable_length() >= place.length;
  // An open chunk is no shorter than when it was sealed last, whoever says so.
  return answer.readable_length() >= place.length && (answer.sealed() || (place.primary && from == place.primary));
}

// ---- reading ---------------------------------------------------------------------------------------

Task<Result<ChunkBytes>> ChunkReader::Read(std::shared_ptr<ChunkReader> self, InodeId inode, uint64_t index,
                                           uint64_t offset, uint64_t size, uint64_t least) {
  Env& env = self->env_;
  // A master that restarts is waited for; chunkservers that are gone are not.
  Mono deadline = env.Now() + self->master_patience_;
  std::optional<Mono> give_up;
  std::shared_ptr<Race> last;
  for (int round = 1;; ++round) {
    bool cached = false;
    auto place = co_await Find(self, inode, index, deadline, &cached);
    if (!place) {
      // Where the chunk was, and who refused it, says more than a master that is silent now.
      if (last && IsRetryable(place.error().code)) co_return Fail(self->Nobody(*last));
      co_return Fail(std::move(place).error());
    }
    if (!give_up) give_up = deadline = env.Now() + kGiveUpAfter;
    auto race = std::make_shared<Race>(env);
    race->place = std::move(*place);
    race->offset = offset;
    race->size = size;
    race->least = least;
    if (!race->place.chunk) co_return ChunkBytes();
    co_await RunRace(self, race, cached ? std::min(*give_up, env.Now() + kTrustCacheFor) : *give_up);
    if (race->won) co_return std::move(*race->won);
    last = race;
    self->cache_.Forget(inode, index);
    if (cached) continue;
    const Nanos delay = NextDelay(kRounds, round, env.Random());
    const bool all_corrupt = !race->refusals.empty() && std::ranges::all_of(race->refusals, [](const Refusal& r) {
      return r.error.code == Code::kCorrupt;
    });
    if (env.Now() + delay >= *give_up || (all_corrupt && round > 2)) co_return Fail(self->Nobody(*race));
    co_await env.Sleep(delay);
  }
}

Task<> ChunkReader::RunRace(std::shared_ptr<ChunkReader> self, std::shared_ptr<Race> race, Mono end) {
  Env& env = self->env_;
  // One client keeps to one replica of a chunk, different clients to different ones. What is readable of
  // an open chunk is known best by its primary.
  const uint64_t spread = race->place.chunk.value ^ self->master_->client().value;
  const ServerId preferred = race->place.sealed ? ServerId() : race->place.primary;
  auto order = self->health_.Order(race->place.replicas, preferred, spread, env.Now());
  // How far an open chunk reaches is the primary's word, however it disappointed before: the others hear of what
  // was acknowledged a little later.
  const auto primary = std::ranges::find(order, preferred, &ReplicaPlace::server);
  if (race->size == 0 && primary != order.end()) std::rotate(order.begin(), primary, primary + 1);
  size_t asked = 0;
  size_t refused = 0;
  bool ask_next = true;
  while (!race->won && env.Now() < end) {
    if (asked < order.size() && (ask_next || race->running == 0)) {
      ++race->running;
      env.Spawn(Ask(self, race, order[asked++], std::min(kReadTimeout, end - env.Now())));
    } else if (race->running == 0) {
      co_return;
    }
    const bool more = asked < order.size();
    const bool news = co_await race->news.WaitFor(more ? std::min(kHedgeAfter, end - env.Now()) : end - env.Now());
    if (!news && more) self->health_.Disappointed(order[asked - 1].server, env.Now());
    ask_next = !news || race->refusals.size() > refused;
    refused = race->refusals.size();
  }
}

Task<> ChunkReader::Ask(std::shared_ptr<ChunkReader> self, std::shared_ptr<Race> race, ReplicaPlace replica,
                        Nanos timeout) {
  proto::ReadRequest request;
  request.set_chunk(race->place.chunk.value);
  request.set_version(race->place.version.value);
  request.set_offset(race->offset);
  request.set_length(static_cast<uint32_t>(race->size));
  const Mono asked_at = self->env_.Now();
  auto channel = self->channels_.Get(replica.endpoint);
  auto reply = co_await channel->Call(proto::READ, request.SerializeAsString(), Payload(), timeout);
  --race->running;
  const bool answered = reply.has_value();
  auto bytes = self->Judge(*race, replica.server, std::move(reply));
  if (bytes) {
    if (self->env_.Now() - asked_at < kHedgeAfter) self->health_.Served(replica.server);
    if (!race->won) race->won = std::move(*bytes);
  } else {
    Error error = std::move(bytes).error();
    if (Disappointing(error.code)) self->health_.Disappointed(replica.server, self->env_.Now());
    if (answered && error.code == Code::kCorrupt) self->env_.Spawn(Complain(self, race, replica));
    race->refusals.push_back({replica, std::move(error)});
  }
  race->news.NotifyAll();
}

Result<ChunkBytes> ChunkReader::Judge(const Race& race, ServerId from, Result<RpcReply> reply) const {
  if (!reply) return Fail(std::move(reply).error());
  proto::ReadResponse answer;
  if (!answer.ParseFromString(reply->body)) return Fail(Code::kCorrupt, "the answer does not parse");
  auto data = VerifiedBytes(answer, reply->payload.buffer(), race.offset, race.size);
  if (!data) return Fail(std::move(data).error());
  if (data->size() < race.size && !EndsThere(race, from, answer)) {
    return Fail(Code::kShort, "it has " + std::to_string(answer.readable_length()) + " readable bytes");
  }
  return ChunkBytes{std::move(*data), answer.readable_length(), answer.sealed()};
}

Task<> ChunkReader::Complain(std::shared_ptr<ChunkReader> self, std::shared_ptr<Race> race, ReplicaPlace replica) {
  proto::VerifyReplicaRequest request;
  request.set_chunk(race->place.chunk.value);
  request.set_version(race->place.version.value);
  request.set_offset(race->offset);
  request.set_length(static_cast<uint32_t>(race->size));
  auto channel = self->channels_.Get(replica.endpoint);
  auto verdict = co_await channel->Call<proto::VerifyReplicaResponse>(proto::VERIFY_REPLICA, request, kReadTimeout);
  PICKET_LOG(self->env_, kWarning, "chunk {}: bytes from {} did not match their checksums; it {}",
             ToString(race->place.chunk), Label(replica),
             !verdict             ? "did not answer when asked to verify itself"
             : verdict->corrupt() ? "found its replica corrupt"
                                  : "found its replica good");
}

Error ChunkReader::Nobody(const Race& race) const {
  const ChunkPlace& place = race.place;
  Error error(Code::kUnavailable, "no replica of chunk " + ToString(place.chunk) + " at version " +
                                      place.version.ToString() + " can be read: ");
  if (place.replicas.empty() && !place.corrupt.empty()) {
    error.code = Code::kCorrupt;
    error.message += "all that are left are corrupt:";
    for (const auto& replica : place.corrupt) error.message += " server " + Label(replica);
  } else if (place.replicas.empty()) {
    error.message += "the master knows no server that has one";
  } else {
    bool corrupt = true;
    for (const auto& replica : place.replicas) {
      auto said = std::ranges::find(race.refusals, replica.server, [](const Refusal& r) { return r.from.server; });
      if (&replica != &place.replicas.front()) error.message += ", ";
      error.message += "server " + Label(replica) + ": ";
      error.message += said == race.refusals.end()
                           ? "no answer"
                           : std::string(CodeName(said->error.code)) + " " + said->error.message;
      if (said == race.refusals.end() || said->error.code != Code::kCorrupt) corrupt = false;
    }
    if (corrupt) error.code = Code::kCorrupt;
  }
  error.next_step = error.code == Code::kCorrupt
                        ? "put the file again from another copy; a server that is down may have a good replica"
                        : "see which servers are missing with: picket admin report";
  return error;
}

}  // namespace picket
