#include <fmt/format.h>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/remote_path.h"
#include "common/base/crc32c.h"

namespace picket::cli {
namespace {

using client::Client;
using client::Error;
using client::ErrorKind;
using client::FileStatus;
using client::Result;

constexpr int kBlockBytes = 64 << 10;

std::unexpected<Error> Refused(ErrorKind kind, std::string code, std::string message, std::string next_step) {
  Error error;
  error.kind = kind;
  error.code = std::move(code);
  error.message = std::move(message);
  error.next_step = std::move(next_step);
  return std::unexpected(std::move(error));
}

// A chunk's digest is the CRC32C of the CRC32Cs of its blocks; ours is the CRC32C of the digests of all
// chunks, each as 4 bytes, little-endian. Equal content gives equal sums only at equal chunk sizes, so the
// name says both sizes. It tells accidents, not attackers.
std::string AlgorithmName(uint64_t chunk_size) {
  return fmt::format("CRC32C-of-{}CRC32C-of-{}CRC32C", chunk_size, kBlockBytes);
}

Result<uint32_t> Checksum(Client& client, const FileStatus& file) {
  if (file.type == client::FileType::kDirectory) {
    return Refused(ErrorKind::kIsDirectory, "IS_DIRECTORY", "a directory has no checksum", "name files");
  }
  if (file.open) {
    return Refused(ErrorKind::kConflict, "CONFLICT", "the file is being written", "try again when it is closed");
  }
  const auto chunks = client.Chunks(file.path);
  if (!chunks) return std::unexpected(chunks.error());
  uint32_t sum = 0;
  for (const client::ChunkInfo& chunk : *chunks) {
    if (!chunk.sealed) {
      return Refused(ErrorKind::kConflict, "CONFLICT", "the file is being written", "try again when it is closed");
    }
    const unsigned char bytes[4] = {
        static_cast<unsigned char>(chunk.digest), static_cast<unsigned char>(chunk.digest >> 8),
        static_cast<unsigned char>(chunk.digest >> 16), static_cast<unsigned char>(chunk.digest >> 24)};
    sum = Crc32c(bytes, sizeof bytes, sum);
  }
  return sum;
}

}  // namespace

int RunChecksum(Context& context, const std::vector<std::string>& args) {
  std::vector<std::string> paths;
  Arguments arguments(context);
  arguments.Positionals("paths", paths, 1, Arguments::kAnyNumber, "Files");
  if (auto code = arguments.Parse(args)) return *code;
  Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  Json entries = Json::array();
  for (const std::string& argument : paths) {
    const auto found = Expand(*client, argument);
    if (!found) {
      context.Fail(argument, found.error());
      continue;
    }
    for (const FileStatus& file : *found) {
      const auto sum = Checksum(*client, file);
      if (!sum) {
        context.Fail(file.path, sum.error());
        continue;
      }
      context.Succeed();
      const std::string algorithm = AlgorithmName(file.chunk_size);
      const std::string hex = fmt::format("{:08x}", *sum);
      entries.push_back({{"path", file.path}, {"algorithm", algorithm}, {"checksum", hex}, {"bytes", file.length}});
      if (!context.options.json) context.out.Print("{}\t{}\t{}\n", context.out.Name(file.path), algorithm, hex);
    }
  }
  if (context.options.json) context.out.PrintJson({{"entries", std::move(entries)}});
  return context.Finish();
}

}  // namespace picket::cli
