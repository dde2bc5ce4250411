// `picket appendToFile` as a process of its own, fed through a pipe: a writer that can be stopped in the middle of
// its work, as a garbage collection or the scheduler stops one, and knows nothing of it. Killed at destruction.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>

#include "client/cli/local_file.h"
#include "common/base/error.h"

namespace picket::cli::demo {

class WriterProcess {
 public:
  static Result<std::unique_ptr<WriterProcess>> Start(const std::string& client_config, const std::string& path);
  ~WriterProcess();
  WriterProcess(const WriterProcess&) = delete;

  // Into the pipe: the writer takes it when it runs, and flushes when no more comes.
  Status Feed(std::string_view bytes);
  void Pause();
  void Resume();

  struct Ended {
    int exit_code = 0;
    std::string errors;  // its standard error, without the last line's end
  };
  // Ends the input and waits for its end.
  Result<Ended> Finish();

 private:
  WriterProcess() = default;

  pid_t pid_ = 0;
  LocalFd input_;
  LocalFd errors_;
};

}  // namespace picket::cli::demo
