#include "client/cli/demo/writer_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "client/cli/demo/stage.h"
#include "client/cli/interrupt.h"

namespace picket::cli::demo {
namespace {

Error SystemError(std::string_view what, int error) { return NotAsTold(fmt::format("{}: {}", what, strerror(error))); }

struct Pipe {
  LocalFd read_end;
  LocalFd write_end;
};
Result<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Fail(SystemError("a pipe", errno));
  return Pipe{LocalFd(ends[0]), LocalFd(ends[1])};
}

// In a group of its own: a Ctrl-C is for the demonstration, which ends it.
Result<pid_t> Spawn(std::vector<std::string> args, int input, int errors) {
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  sigset_t handled;
  sigfillset(&handled);
  posix_spawnattr_setsigdefault(&attributes, &handled);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return Fail(SystemError("a writer could not be started", error));
  return pid;
}

}  // namespace

Result<std::unique_ptr<WriterProcess>> WriterProcess::Start(const std::string& client_config, const std::string& path) {
  auto input = MakePipe();
  if (!input) return Fail(input.error());
  auto errors = MakePipe();
  if (!errors) return Fail(errors.error());
  const auto pid = Spawn({"picket", "--config", client_config, "appendToFile", "-", path}, input->read_end.get(),
                         errors->write_end.get());
  if (!pid) return Fail(pid.error());
  std::unique_ptr<WriterProcess> writer(new WriterProcess);
  writer->pid_ = *pid;
  writer->input_ = std::move(input->write_end);
  writer->errors_ = std::move(errors->read_end);
  return writer;
}

WriterProcess::~WriterProcess() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

Status WriterProcess::Feed(std::string_view bytes) {
  // Less than a pipe holds: never waits for a writer that stands still.
  if (write(input_.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    return Fail(SystemError("the writer's pipe", errno));
  }
  return {};
}

void WriterProcess::Pause() { kill(pid_, SIGSTOP); }
void WriterProcess::Resume() { kill(pid_, SIGCONT); }

Result<WriterProcess::Ended> WriterProcess::Finish() {
  input_ = LocalFd();
  Ended ended;
  while (true) {
    if (WaitReadable(errors_.get(), kConditionTimeout) != Wait::kReadable) {
      return Fail(NotAsTold(Interrupted() ? "interrupted" : "the writer does not end"));
    }
    char bytes[4096];
    const ssize_t n = read(errors_.get(), bytes, sizeof bytes);
    if (n <= 0) break;
    ended.errors.append(bytes, static_cast<size_t>(n));
  }
  int status = 0;
  PICKET_TRY(Until("the writer ends", [&] { return waitpid(pid_, &status, WNOHANG) == pid_; }));
  pid_ = 0;
  ended.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  while (ended.errors.ends_with('\n')) ended.errors.pop_back();
  return ended;
}

}  // namespace picket::cli::demo
