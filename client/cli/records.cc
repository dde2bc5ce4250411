#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "client/cli/arguments.h"
#include "client/cli/commands.h"
#include "client/cli/interrupt.h"
#include "client/cli/local_file.h"
#include "client/cli/remote_path.h"
#include "client/cli/text.h"
#include "common/base/utf8.h"

namespace picket::cli {
namespace {

constexpr size_t kReadBytes = 1 << 20;

struct Flags {
  bool lines = false;
  bool length_prefixed = false;
  bool offsets = false;
  bool raw = false;
  bool sync = false;
  std::string writer_id;
};

// ---- append ----------------------------------------------------------------------------------------

// Cuts a stream of bytes into records: a line each, or bytes behind their length (4 bytes, little-endian).
class Cutter {
 public:
  explicit Cutter(bool length_prefixed) : length_prefixed_(length_prefixed) {}

  // The records that are complete by now.
  std::vector<std::string> Add(std::string_view bytes) {
    rest_.append(bytes);
    std::vector<std::string> records;
    size_t at = 0;
    if (length_prefixed_) {
      uint32_t size = 0;
      while (rest_.size() - at >= sizeof size) {
        std::memcpy(&size, rest_.data() + at, sizeof size);
        if (rest_.size() - at - sizeof size < size) break;
        records.push_back(rest_.substr(at + sizeof size, size));
        at += sizeof size + size;
      }
    } else {
      for (size_t end = 0; (end = rest_.find('\n', at)) != std::string::npos; at = end + 1) {
        if (end > at) records.push_back(rest_.substr(at, end - at));
      }
    }
    rest_.erase(0, at);
    return records;
  }
  // What is left at the end of the input: a last line without its end; of a length-prefixed one a mistake.
  std::string& rest() { return rest_; }

 private:
  const bool length_prefixed_;
  std::string rest_;
};

struct Appended {
  uint64_t records = 0;
  uint64_t bytes = 0;
  Json offsets = Json::array();
};

client::Result<> AppendAll(Context& context, client::RecordAppender& appender, const std::vector<std::string>& records,
                           const Flags& flags, Appended* done) {
  if (records.empty()) return {};
  const auto answers = appender.AppendAll(records, flags.sync);
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i]) return std::unexpected(answers[i].error());
    ++done->records;
    done->bytes += records[i].size();
    if (context.options.json) {
      if (flags.offsets) done->offsets.push_back(*answers[i]);
    } else if (flags.offsets) {
      context.out.Print("{}\n", *answers[i]);
    }
  }
  context.out.Flush();
  return {};
}

client::Result<> AppendFrom(Context& context, int fd, client::RecordAppender& appender, const Flags& flags,
                            Appended* done) {
  Cutter cutter(flags.length_prefixed);
  std::vector<char> piece(kReadBytes);
  while (true) {
    if (fd == STDIN_FILENO) WaitReadable(fd, std::chrono::milliseconds(-1));
    if (Interrupted()) {
      return std::unexpected(client::Error{.code = "INTERRUPTED", .message = "stopped by a signal"});
    }
    const auto n = ReadLocal(fd, piece.data(), piece.size());
    if (!n) return std::unexpected(n.error());
    if (*n == 0) break;
    if (auto sent = AppendAll(context, appender, cutter.Add({piece.data(), *n}), flags, done); !sent) return sent;
    if (cutter.rest().size() > appender.max_record() + sizeof(uint32_t)) {
      return std::unexpected(client::Error{
          .kind = client::ErrorKind::kInvalidArgument,
          .code = "INVALID_ARGUMENT",
          .message =
              fmt::format("a record is larger than {} bytes, the most that this file takes", appender.max_record()),
          .next_step = "cut it, or make the file with larger chunks"});
    }
  }
  if (cutter.rest().empty()) return {};
  if (flags.length_prefixed) {
    return std::unexpected(client::Error{.kind = client::ErrorKind::kInvalidArgument,
                                         .code = "INVALID_ARGUMENT",
                                         .message = "the input ends inside a record",
                                         .next_step = "look at what made it"});
  }
  return AppendAll(context, appender, {cutter.rest()}, flags, done);
}

void Append(Context& context, const Flags& flags, const std::string& argument, const std::string& source) {
  LocalFd file;
  if (source != "-") {
    auto opened = OpenForReading(source);
    if (!opened) return context.Fail(source, opened.error());
    file = std::move(*opened);
  }
  client::Client* client = context.Connect();
  if (client == nullptr) return;
  const std::string path = ResolvePath(argument, client->user());
  client::AppendOptions options;
  options.writer_id = flags.writer_id;
  const Deferral deferral;
  auto appender = client->AppendRecords(path, options);
  if (!appender) return context.Fail(path, appender.error());
  for (const std::string& warning : (*appender)->warnings()) context.Warn(path, warning);
  Appended done;
  auto result = AppendFrom(context, file ? file.get() : STDIN_FILENO, **appender, flags, &done);
  // What was acknowledged stays; the session is left in order all the same.
  auto closed = (*appender)->Close();
  if (result) result = std::move(closed);
  if (!result) {
    if (done.records > 0) context.Warn(path, fmt::format("{} records were appended and stay", done.records));
    return context.Fail(path, result.error());
  }
  context.Succeed();
  if (!context.options.json) return;
  Json summary = {{"path", path}, {"records", done.records}, {"bytes", done.bytes}};
  if (flags.offsets) summary["offsets"] = std::move(done.offsets);
  context.out.PrintJson(summary);
}

// ---- cat -------------------------------------------------------------------------------------------

std::string Hex(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

// One line for each record: it may be a long stream.
void PrintFacts(Output& out, const client::Record& record) {
  Json facts = {{"offset", record.offset},
                {"client", HexId(record.client)},
                {"sequence", record.sequence},
                {"size", record.bytes.size()}};
  if (IsUtf8(record.bytes)) {
    facts["text"] = record.bytes;
  } else {
    facts["hex"] = Hex(record.bytes);
  }
  out.Print("{}\n", facts.dump());
}

void Print(Context& context, const Flags& flags, const client::Record& record) {
  Output& out = context.out;
  if (context.options.json) return PrintFacts(out, record);
  if (flags.offsets) {
    return out.Print("{} {} {} {}\n", record.offset, HexId(record.client), record.sequence, record.bytes.size());
  }
  if (flags.length_prefixed) {
    const auto size = static_cast<uint32_t>(record.bytes.size());
    out.Write({reinterpret_cast<const char*>(&size), sizeof size});
  }
  out.Write(record.bytes);
  if (!flags.raw && !flags.length_prefixed) out.Write("\n");
}

void Cat(Context& context, client::Client& client, const Flags& flags, const std::string& path) {
  auto reader = client.ReadRecords(path);
  if (!reader) return context.Fail(path, reader.error());
  while (true) {
    const auto record = (*reader)->Next();
    if (!record) return context.Fail(path, record.error());
    if (!*record) return context.Succeed();
    Print(context, flags, **record);
  }
}

}  // namespace

int RunRecords(Context& context, const std::vector<std::string>& args) {
  Flags flags;
  std::vector<std::string> words;
  Arguments arguments(context);
  arguments.Flag("--lines", flags.lines, "A record is a line, without its end; empty lines are none (the default)")
      .Flag("--length-prefixed", flags.length_prefixed, "A record stands behind its length: 4 bytes, little-endian")
      .Flag("--raw", flags.raw, "With cat: the bytes of the records, nothing between them")
      .Flag("--offsets", flags.offsets,
            "With append: print the offset of each record; with cat: offset, client, sequence and size of each")
      .Flag("--sync", flags.sync, "With append: each record is on every replica's disk before the next are sent")
      .Text("--writer-id", flags.writer_id, "ID", "With append: the logical writer, the same one after a restart")
      .Words(words, {"append", "cat"}, Arguments::kAnyNumber, "append PATH [FILE]; cat PATH...");
  if (auto code = arguments.Parse(args)) return *code;
  const std::string verb = words.front();
  words.erase(words.begin());
  if (words.empty()) return context.UsageError(fmt::format("{}: a path is required", verb));
  if (flags.lines + flags.length_prefixed + flags.raw > 1) {
    return context.UsageError("--lines, --length-prefixed and --raw exclude each other");
  }
  if (verb == "append") {
    if (words.size() > 2) return context.UsageError("append: one path, and at most one local file");
    if (flags.raw) return context.UsageError("append: --raw does not say where a record ends");
    Append(context, flags, words[0], words.size() > 1 ? words[1] : "-");
    return context.Finish();
  }
  if (flags.sync || !flags.writer_id.empty()) return context.UsageError("cat: --sync and --writer-id are of append");
  client::Client* client = context.Connect();
  if (client == nullptr) return context.Finish();
  for (const std::string& word : words) {
    const auto found = Expand(*client, word);
    if (!found) {
      context.Fail(word, found.error());
      continue;
    }
    for (const client::FileStatus& file : *found) Cat(context, *client, flags, file.path);
  }
  return context.Finish();
}

}  // namespace picket::cli
