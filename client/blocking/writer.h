// Writer over a FileWriter on the loop. Bytes are gathered into packets in the caller's thread, so a
// small Write costs no hand-over.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/blocking/loop_thread.h"
#include "picket/client.h"

namespace picket::client {

class BlockingWriter final : public Writer {
 public:
  BlockingWriter(std::shared_ptr<LoopThread> loop, std::unique_ptr<FileWriter> file, std::string path);
  ~BlockingWriter() override;

  Result<> Write(const void* data, size_t size) override;
  Result<> Flush() override;
  Result<> Sync() override;
  Result<FileStatus> Close() override;
  Result<> Abandon() override;
  uint64_t bytes_written() const override { return written_; }
  uint64_t bytes_acknowledged() const override { return acknowledged_; }
  const std::vector<std::string>& warnings() const override { return warnings_; }

 private:
  using Step = Task<Status> (FileWriter::*)();
  // Hands what was gathered to the file, then takes `step`, if any.
  Result<> Advance(Step step);
  std::unexpected<Error> Ends(const picket::Error& why);
  Buffer TakeGathered();

  // On the loop, while the caller waits.
  Task<Status> Take(Buffer gathered, Step step);
  Task<picket::Result<proto::FileStatus>> TakeClose(Buffer gathered);
  void Learn();

  const std::shared_ptr<LoopThread> loop_;
  std::unique_ptr<FileWriter> file_;
  const std::string path_;
  const uint64_t begin_;   // where in the file
  Buffer gathered_;
  size_t gathered_size_ = 0;
  uint64_t written_ = 0;
  uint64_t acknowledged_ = 0;
  std::vector<std::string> warnings_;
  std::optional<Error> ended_;  // why nothing more can be written
};

}  // namespace picket::client
