#include "common/identity/data_dir.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "common/obs/toml.h"

namespace picket {
namespace {

constexpr char kIdentityFile[] = "picket.toml";
constexpr char kLockFile[] = "LOCK";

std::string Format(const DirIdentity& id) {
  std::string out = fmt::format(
      "# Whose directory this is. Written once by `picket-{} init`; do not edit.\n"
      "format = {}\nrole = {}\ncluster = {}\n",
      id.role, id.format, TomlQuote(id.role), TomlQuote(id.cluster));
  if (id.server) out += fmt::format("server = \"{}\"\n", ToString(id.server));
  out += fmt::format("created_ns = {}\n", id.created_ns);
  return out;
}

template <class T>
bool ReadInteger(const std::map<std::string, TomlValue>& values, const char* name, T* out) {
  auto it = values.find(name);
  if (it == values.end() || it->second.kind != TomlValue::Kind::kInteger) return false;
  const std::string& text = it->second.text;
  auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return ec == std::errc() && end == text.data() + text.size();
}

bool ReadString(const std::map<std::string, TomlValue>& values, const char* name, std::string* out) {
  auto it = values.find(name);
  if (it == values.end() || it->second.kind != TomlValue::Kind::kString) return false;
  *out = it->second.text;
  return true;
}

// The format is judged before anything else is read: a newer one may hold what this release cannot know.
Result<DirIdentity> Parse(const std::string& text, const std::string& path) {
  auto damaged = [&] {
    return Fail(Error(Code::kInvalidArgument, path + " is not the identity of a Picket directory")
                    .WithNextStep("restore that file, or give another directory"));
  };
  auto values = ParseToml(text, path);
  if (!values) return damaged();
  DirIdentity id;
  if (!ReadInteger(*values, "format", &id.format) || id.format == 0) return damaged();
  if (id.format > kDataDirFormat) {
    return Fail(Error(Code::kUnsupported, fmt::format("{} has format {}, this release reads formats up to {}", path,
                                                      id.format, kDataDirFormat))
                    .WithNextStep("run the newer release that wrote it"));
  }
  std::string server;
  if (!ReadString(*values, "role", &id.role) || !ReadString(*values, "cluster", &id.cluster) ||
      !ReadInteger(*values, "created_ns", &id.created_ns)) {
    return damaged();
  }
  if (ReadString(*values, "server", &server) && !FromHex(server, &id.server.value)) return damaged();
  return id;
}

Error Unreadable(const std::string& path, Error e) {
  e.message = fmt::format("cannot read {}: {}", path, e.message);
  return e;
}

bool IsEmpty(const std::vector<std::string>& names) {
  return std::all_of(names.begin(), names.end(), [](const std::string& n) { return n == "lost+found"; });
}

std::string Parent(const std::string& dir) {
  const size_t slash = dir.find_last_of('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : dir.substr(0, slash);
}

std::string WithoutTrailingSlashes(std::string dir) {
  while (dir.size() > 1 && dir.ends_with('/')) dir.pop_back();
  return dir;
}

}  // namespace

Task<Status> InitDataDir(Env* env, std::string dir, std::string role, std::string cluster, ServerId server,
                         std::map<std::string, std::string> files) {
  Fs& fs = env->fs();
  dir = WithoutTrailingSlashes(std::move(dir));
  PICKET_CO_TRY(co_await fs.MakeDir(dir));
  auto names = co_await fs.List(dir);
  if (!names) co_return Fail(Unreadable(dir, std::move(names).error()));
  const std::string identity_path = dir + "/" + kIdentityFile;
  if (std::binary_search(names->begin(), names->end(), kIdentityFile)) {
    auto text = co_await ReadFile(&fs, identity_path);
    if (!text) co_return Fail(Unreadable(identity_path, std::move(text).error()));
    auto id = Parse(*text, identity_path);
    if (!id) co_return Fail(id.error());
    co_return Fail(Error(Code::kAlreadyExists,
                         fmt::format("{} is already initialised as {} of cluster {}", dir, id->role, id->cluster))
                       .WithNextStep("start the server on it, or give another directory"));
  }
  if (!IsEmpty(*names)) {
    co_return Fail(Error(Code::kNotEmpty, fmt::format("{} is not empty: it holds {}", dir, names->front()))
                       .WithNextStep("give an empty directory, or move away what is in it"));
  }
  for (auto& [name, content] : files) PICKET_CO_TRY(co_await WriteFileAtomic(&fs, dir + "/" + name, content));
  DirIdentity id;
  id.role = std::move(role);
  id.cluster = std::move(cluster);
  id.server = server;
  id.created_ns = env->WallNanos();
  PICKET_CO_TRY(co_await WriteFileAtomic(&fs, identity_path, Format(id)));
  co_return co_await fs.SyncDir(Parent(dir));
}

Task<Result<DataDir>> DataDir::Open(Env* env, std::string dir, std::string role) {
  Fs& fs = env->fs();
  dir = WithoutTrailingSlashes(std::move(dir));
  const std::string init = fmt::format("`picket-{} init`", role);
  auto names = co_await fs.List(dir);
  if (!names && names.error().code == Code::kNotFound) {
    co_return Fail(Error(Code::kNotFound, dir + " does not exist")
                       .WithNextStep(fmt::format("mount its disk, or run {} for a new server", init)));
  }
  if (!names) co_return Fail(Unreadable(dir, std::move(names).error()));
  if (IsEmpty(*names)) {
    co_return Fail(Error(Code::kNotFound, dir + " is empty: an unmounted disk?")
                       .WithNextStep(fmt::format("mount it; run {} only on a new disk", init)));
  }
  const std::string identity_path = dir + "/" + kIdentityFile;
  if (!std::binary_search(names->begin(), names->end(), kIdentityFile)) {
    co_return Fail(Error(Code::kInvalidArgument,
                         fmt::format("{} is foreign: it holds {} and no {}", dir, names->front(), kIdentityFile))
                       .WithNextStep(fmt::format("give the directory that {} made", init)));
  }
  auto lock = fs.Lock(dir + "/" + kLockFile);
  if (!lock && lock.error().code == Code::kUnavailable) {
    co_return Fail(Error(Code::kUnavailable, dir + " is in use by another process")
                       .WithNextStep("stop that server, or give another directory"));
  }
  if (!lock) co_return Fail(lock.error());
  auto text = co_await ReadFile(&fs, identity_path);
  if (!text) co_return Fail(Unreadable(identity_path, std::move(text).error()));
  auto id = Parse(*text, identity_path);
  if (!id) co_return Fail(id.error());
  if (id->role != role) {
    co_return Fail(Error(Code::kInvalidArgument,
                         fmt::format("{} belongs to a {} of cluster {}, not to a {}", dir, id->role, id->cluster, role))
                       .WithNextStep(fmt::format("give the directory that {} made", init)));
  }
  co_return DataDir(std::move(dir), std::move(*id), std::move(*lock));
}

}  // namespace picket
