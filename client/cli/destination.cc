#include "client/cli/destination.h"

#include "client/cli/local_file.h"
#include "client/cli/remote_path.h"

namespace picket::cli {
namespace {

using client::Error;
using client::ErrorKind;
using client::Result;

std::unexpected<Error> Refused(ErrorKind kind, std::string code, std::string message, std::string next_step) {
  Error error;
  error.kind = kind;
  error.code = std::move(code);
  error.message = std::move(message);
  error.next_step = std::move(next_step);
  return std::unexpected(std::move(error));
}

Result<Destination> Judge(Destination destination, bool needs_directory, std::string next_step) {
  if (needs_directory && !destination.exists) {
    return Refused(ErrorKind::kNotFound, "NOT_FOUND", "no such directory", std::move(next_step));
  }
  if (needs_directory && !destination.is_directory) {
    return Refused(ErrorKind::kNotDirectory, "NOT_DIRECTORY", "the destination is a file, not a directory",
                   "give a directory, or one source");
  }
  return destination;
}

}  // namespace

std::string Destination::For(std::string_view name) const {
  return is_directory && !name.empty() ? JoinPath(path, name) : path;
}

Result<Destination> RemoteDestination(client::Client& client, std::string_view argument, size_t sources) {
  Destination destination{.path = ResolvePath(argument, client.user())};
  const auto status = client.Stat(destination.path);
  if (status) {
    destination.exists = true;
    destination.is_directory = status->type == client::FileType::kDirectory;
  } else if (status.error().kind != ErrorKind::kNotFound) {
    return std::unexpected(status.error());
  }
  return Judge(destination, sources > 1 || argument.ends_with('/'),
               "make it first: picket mkdir -p " + destination.path);
}

Result<Destination> LocalDestination(std::string_view argument, size_t sources) {
  Destination destination{.path = std::string(argument)};
  const auto status = StatLocal(destination.path, true);
  if (status) {
    destination.exists = true;
    destination.is_directory = status->type == LocalStatus::Type::kDirectory;
    if (status->type == LocalStatus::Type::kSpecial) {
      return Refused(ErrorKind::kInvalidArgument, "INVALID_ARGUMENT",
                     std::string("the destination is ") + status->type_name, "picket cat writes to standard output");
    }
  } else if (status.error().kind != ErrorKind::kNotFound) {
    return std::unexpected(status.error());
  }
  return Judge(destination, sources > 1 || argument.ends_with('/'), "make it first: mkdir -p " + destination.path);
}

Result<> EnsureDirectory(client::Client& client, const std::string& path) {
  auto made = client.Mkdir(path, false);
  if (made) return {};
  if (made.error().kind == ErrorKind::kAlreadyExists) {
    const auto there = client.Stat(path);
    if (there && there->type == client::FileType::kDirectory) return {};
  }
  return std::unexpected(made.error());
}

}  // namespace picket::cli
