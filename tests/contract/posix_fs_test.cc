// What only the production file system promises: permissions, descriptors, errno.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <fstream>

#include "common/env/posix/fd.h"
#include "common/env/posix/posix_env.h"
#include "common/env/posix/posix_file.h"
#include "tests/contract/posix_fixture.h"

namespace picket::contract {
namespace {

class PosixFsTest : public testing::Test {
 protected:
  void RunTask(Task<> task) { ASSERT_TRUE(fixture_.Run(0, std::move(task), 20s)); }
  PosixFixture fixture_;
};

mode_t ModeOf(const std::string& path) {
  struct stat st{};
  EXPECT_EQ(::stat(path.c_str(), &st), 0);
  return st.st_mode & 07777;
}

Task<> Modes(Env* env, std::string dir) {
  const auto file = co_await env->fs().Open(dir + "/f", OpenMode::kCreateNew);
  EXPECT_TRUE(file);
  if (!file) co_return;
  EXPECT_TRUE(co_await env->fs().MakeDir(dir + "/d"));
  EXPECT_TRUE(env->fs().Lock(dir + "/l"));
  EXPECT_EQ(ModeOf(dir + "/f"), 0600u);
  EXPECT_EQ(ModeOf(dir + "/d"), 0700u);
  EXPECT_EQ(ModeOf(dir + "/l"), 0600u);
  const int fd = dynamic_cast<const posix::PosixFile&>(**file).fd();
  EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
}
TEST_F(PosixFsTest, FilesAreTheirOwnersOnly) {
  const mode_t before = ::umask(0);
  RunTask(Modes(&fixture_.env(0), fixture_.dir(0)));
  ::umask(before);
}

Task<> ReserveThenTruncate(Env* env, std::string dir) {
  const auto file = co_await env->fs().Open(dir + "/f", OpenMode::kCreateNew);
  EXPECT_TRUE(file);
  if (!file) co_return;
  EXPECT_TRUE(co_await (*file)->Reserve(8 << 20));
  EXPECT_TRUE(co_await (*file)->WriteAt(0, Buffer::Copy("five\n")));
  EXPECT_TRUE(co_await (*file)->Truncate(5));
  struct stat st{};
  EXPECT_EQ(::stat((dir + "/f").c_str(), &st), 0);
  EXPECT_EQ(st.st_size, 5);
  EXPECT_LT(st.st_blocks * 512, 1 << 20);
}
TEST_F(PosixFsTest, TruncateToTheSameSizeGivesReservedSpaceBack) {
  RunTask(ReserveThenTruncate(&fixture_.env(0), fixture_.dir(0)));
}

TEST_F(PosixFsTest, ALockNamesItsHolder) {
  Fs& fs = fixture_.env(0).fs();
  const std::string path = fixture_.dir(0) + "/LOCK";
  std::ofstream(path) << "an old and much longer content than a process id\n";
  const auto first = fs.Lock(path);
  ASSERT_TRUE(first);
  const auto second = fs.Lock(path);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kUnavailable);
  EXPECT_EQ(second.error().message,
            path + " is locked by another process (pid " + std::to_string(::getpid()) + ")");
}

TEST_F(PosixFsTest, ErrnoBecomesACode) {
  EXPECT_EQ(posix::ErrnoError(ENOSPC, "write", "/x").code, Code::kNoSpace);
  EXPECT_EQ(posix::ErrnoError(EDQUOT, "write", "/x").code, Code::kNoSpace);
  EXPECT_EQ(posix::ErrnoError(ENOENT, "open", "/x").code, Code::kNotFound);
  EXPECT_EQ(posix::ErrnoError(EEXIST, "open", "/x").code, Code::kAlreadyExists);
  EXPECT_EQ(posix::ErrnoError(EIO, "read", "/x").code, Code::kIoError);
  EXPECT_EQ(posix::ErrnoError(EIO, "read", "/x").message, "cannot read /x: Input/output error");
}

Task<> FullDisk(Env* env) {
  const auto file = co_await env->fs().Open("/dev/full", OpenMode::kReadWrite);
  EXPECT_TRUE(file);
  if (!file) co_return;
  for (const size_t size : {size_t{10}, size_t{3} << 20}) {
    Buffer data = Buffer::Allocate(size);
    const auto written = co_await (*file)->WriteAt(0, data);
    EXPECT_FALSE(written);
    if (!written) EXPECT_EQ(written.error().code, Code::kNoSpace);
  }
}
TEST_F(PosixFsTest, AFullDiskIsNoSpace) { RunTask(FullDisk(&fixture_.env(0))); }

// Pages that are not cached come by way of the workers, and are the same bytes.
Task<> Uncached(Env* env, std::string dir) {
  auto opened = co_await env->fs().Open(dir + "/f", OpenMode::kCreateNew);
  EXPECT_TRUE(opened);
  if (!opened) co_return;
  auto& file = dynamic_cast<posix::PosixFile&>(**opened);
  Buffer data = Buffer::Allocate(1 << 20);
  for (size_t i = 0; i < data.size(); ++i) data.data()[i] = static_cast<std::byte>(i * 7 + (i >> 9));
  EXPECT_TRUE(co_await file.WriteAt(0, data));
  EXPECT_TRUE(file.Cached(0, data.size()));
  EXPECT_TRUE(co_await file.Sync());
  EXPECT_EQ(::posix_fadvise(file.fd(), 256 << 10, 512 << 10, POSIX_FADV_DONTNEED), 0);
  Buffer into = Buffer::Allocate(data.size());
  const auto n = co_await file.ReadAt(0, into);
  EXPECT_EQ(n.value_or(0), data.size());
  EXPECT_TRUE(into.view() == data.view());
}
TEST_F(PosixFsTest, UncachedPagesAreReadOffTheLoop) { RunTask(Uncached(&fixture_.env(0), fixture_.dir(0))); }

Task<> DirectoryInTheWay(Env* env, std::string dir) {
  Fs& fs = env->fs();
  EXPECT_TRUE(co_await fs.Open(dir + "/f", OpenMode::kCreateNew));
  const auto made = co_await fs.MakeDir(dir + "/f");
  EXPECT_FALSE(made);
  if (!made) EXPECT_EQ(made.error().code, Code::kAlreadyExists);
  const auto opened = co_await fs.Open(dir, OpenMode::kReadWrite);
  EXPECT_FALSE(opened);
  if (!opened) EXPECT_EQ(opened.error().code, Code::kIoError);
}
TEST_F(PosixFsTest, TheWrongKindOfThingIsAnError) { RunTask(DirectoryInTheWay(&fixture_.env(0), fixture_.dir(0))); }

}  // namespace
}  // namespace picket::contract
