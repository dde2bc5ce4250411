// Files and directories. What survives a power cut is the simulator's to test.
#include "tests/contract/env_fixture.h"

#include <vector>

#include "common/env/sync.h"

namespace picket::contract {
namespace {

// Opens or fails the test.
#define OPEN_OR_RETURN(name, fs, path, mode)                                 \
  std::unique_ptr<File> name;                                                \
  {                                                                          \
    auto opened = co_await (fs).Open(path, mode);                            \
    EXPECT_TRUE(opened) << opened.error().ToString();                        \
    if (!opened) co_return;                                                  \
    name = std::move(*opened);                                               \
  }
// No conditional expression around co_await: a named result first.
#define EXPECT_OK(expr)                                                      \
  do {                                                                       \
    const auto& expect_ok = (expr);                                           \
    EXPECT_TRUE(expect_ok) << expect_ok.error().ToString();                  \
  } while (0)
#define EXPECT_CODE(expected, expr)                                          \
  do {                                                                       \
    const auto& expect_code = (expr);                                         \
    EXPECT_FALSE(expect_code);                                               \
    if (!expect_code) EXPECT_EQ(expect_code.error().code, expected) << expect_code.error().ToString(); \
  } while (0)

Buffer Pattern(size_t size, uint32_t seed) {
  Buffer b = Buffer::Allocate(size);
  for (size_t i = 0; i < size; ++i) b.data()[i] = static_cast<std::byte>((i * 131 + seed + (i >> 8)) & 0xff);
  return b;
}

Task<> OpenModes(Env* env, std::string dir) {
  Fs& fs = env->fs();
  const std::string path = dir + "/f";
  EXPECT_CODE(Code::kNotFound, co_await fs.Open(path, OpenMode::kReadOnly));
  EXPECT_CODE(Code::kNotFound, co_await fs.Open(path, OpenMode::kReadWrite));
  EXPECT_FALSE(co_await fs.Exists(path));
  EXPECT_OK(co_await fs.Open(path, OpenMode::kCreateNew));
  EXPECT_TRUE(co_await fs.Exists(path));
  EXPECT_CODE(Code::kAlreadyExists, co_await fs.Open(path, OpenMode::kCreateNew));
  EXPECT_OK(co_await fs.Open(path, OpenMode::kCreate));
  EXPECT_OK(co_await fs.Open(path, OpenMode::kReadWrite));
  EXPECT_OK(co_await fs.Open(path, OpenMode::kReadOnly));
  EXPECT_OK(co_await fs.Open(dir + "/g", OpenMode::kCreate));
  EXPECT_CODE(Code::kNotFound, co_await fs.Open(dir + "/no/f", OpenMode::kCreate));
}
TEST_P(FsContract, OpenModes) { RunTask(OpenModes(&env(), fixture_->dir(0))); }

Task<> CreateKeepsContent(Env* env, std::string dir) {
  Fs& fs = env->fs();
  const std::string path = dir + "/f";
  {
    OPEN_OR_RETURN(file, fs, path, OpenMode::kCreate);
    EXPECT_OK(co_await file->WriteAt(0, Buffer::Copy("hello")));
  }
  OPEN_OR_RETURN(again, fs, path, OpenMode::kCreate);
  const auto size = co_await again->Size();
  EXPECT_EQ(size.value_or(99), 5u);
}
TEST_P(FsContract, CreateOfAnExistingFileKeepsItsContent) { RunTask(CreateKeepsContent(&env(), fixture_->dir(0))); }

Task<> ReadBack(Env* env, std::string dir) {
  Fs& fs = env->fs();
  OPEN_OR_RETURN(file, fs, dir + "/f", OpenMode::kCreateNew);
  uint64_t end = 0;
  for (const size_t size : {size_t{1}, size_t{4096}, size_t{65537}, size_t{1} << 20, (size_t{3} << 20) + 5}) {
    const Buffer data = Pattern(size, static_cast<uint32_t>(size));
    EXPECT_OK(co_await file->WriteAt(end, data));
    Buffer into = env->Allocate(size);
    const auto n = co_await file->ReadAt(end, into);
    EXPECT_EQ(n.value_or(0), size);
    EXPECT_TRUE(into.view() == data.view());
    end += size;
  }
  const auto size = co_await file->Size();
  EXPECT_EQ(size.value_or(0), end);
}
TEST_P(FsContract, WritesReadBack) { RunTask(ReadBack(&env(), fixture_->dir(0))); }

Task<> ShortReads(Env* env, std::string dir) {
  Fs& fs = env->fs();
  OPEN_OR_RETURN(file, fs, dir + "/f", OpenMode::kCreateNew);
  Buffer into = env->Allocate(100);
  auto n = co_await file->ReadAt(0, into);
  EXPECT_EQ(n.value_or(99), 0u);
  EXPECT_OK(co_await file->WriteAt(0, Pattern(150, 1)));
  n = co_await file->ReadAt(100, into);
  EXPECT_EQ(n.value_or(99), 50u);
  EXPECT_TRUE(into.view().substr(0, 50) == Pattern(150, 1).view().substr(100));
  n = co_await file->ReadAt(150, into);
  EXPECT_EQ(n.value_or(99), 0u);
  n = co_await file->ReadAt(1 << 20, into);
  EXPECT_EQ(n.value_or(99), 0u);
  n = co_await file->ReadAt(0, Buffer());
  EXPECT_EQ(n.value_or(99), 0u);
}
TEST_P(FsContract, ReadsAreShortOnlyAtTheEnd) { RunTask(ShortReads(&env(), fixture_->dir(0))); }

Task<> Holes(Env* env, std::string dir) {
  Fs& fs = env->fs();
  OPEN_OR_RETURN(file, fs, dir + "/f", OpenMode::kCreateNew);
  EXPECT_OK(co_await file->WriteAt(10'000, Buffer::Copy("x")));
  Buffer into = env->Allocate(10'001);
  auto n = co_await file->ReadAt(0, into);
  EXPECT_EQ(n.value_or(0), 10'001u);
  EXPECT_EQ(into.view(), std::string(10'000, '\0') + "x");

  EXPECT_OK(co_await file->Truncate(10'000));
  EXPECT_OK(co_await file->Truncate(20'000));
  n = co_await file->ReadAt(9'999, into.Slice(0, 10'001));
  EXPECT_EQ(n.value_or(0), 10'001u);
  EXPECT_EQ(into.view(), std::string(10'001, '\0')) << "cut bytes came back";

  EXPECT_OK(co_await file->Reserve(1 << 20));
  const auto size = co_await file->Size();
  EXPECT_EQ(size.value_or(0), 20'000u) << "Reserve changed the size";
}
TEST_P(FsContract, HolesReadAsZeros) { RunTask(Holes(&env(), fixture_->dir(0))); }

Task<> SyncAndHints(Env* env, std::string dir) {
  Fs& fs = env->fs();
  OPEN_OR_RETURN(file, fs, dir + "/f", OpenMode::kCreateNew);
  EXPECT_OK(co_await file->WriteAt(0, Pattern(100'000, 3)));
  file->StartWriteback(0, 100'000);
  file->StartWriteback(50'000, 0);
  file->StartWriteback(1 << 30, 5);
  EXPECT_OK(co_await file->Sync());
  EXPECT_OK(co_await file->Sync());
  EXPECT_OK(co_await fs.SyncDir(dir));
  EXPECT_CODE(Code::kNotFound, co_await fs.SyncDir(dir + "/no"));
}
TEST_P(FsContract, SyncAndHints) { RunTask(SyncAndHints(&env(), fixture_->dir(0))); }

Task<> Directories(Env* env, std::string dir) {
  Fs& fs = env->fs();
  EXPECT_OK(co_await fs.MakeDir(dir + "/d"));
  EXPECT_OK(co_await fs.MakeDir(dir + "/d"));
  EXPECT_CODE(Code::kNotFound, co_await fs.MakeDir(dir + "/no/d"));
  EXPECT_TRUE(co_await fs.Exists(dir + "/d"));
  for (const char* name : {"/d/b", "/d/a", "/d/c"}) EXPECT_OK(co_await fs.Open(dir + name, OpenMode::kCreateNew));
  auto names = co_await fs.List(dir + "/d");
  EXPECT_EQ(names.value_or(std::vector<std::string>()), (std::vector<std::string>{"a", "b", "c"}));

  EXPECT_OK(co_await fs.Unlink(dir + "/d/b"));
  EXPECT_CODE(Code::kNotFound, co_await fs.Unlink(dir + "/d/b"));
  names = co_await fs.List(dir + "/d");
  EXPECT_EQ(names.value_or(std::vector<std::string>()), (std::vector<std::string>{"a", "c"}));
  names = co_await fs.List(dir);
  EXPECT_EQ(names.value_or(std::vector<std::string>()), (std::vector<std::string>{"d"})) << "List descended";
  EXPECT_CODE(Code::kNotFound, co_await fs.List(dir + "/no"));

  EXPECT_OK(co_await fs.MakeDir(dir + "/empty"));
  names = co_await fs.List(dir + "/empty");
  EXPECT_TRUE(names && names->empty());
}
TEST_P(FsContract, Directories) { RunTask(Directories(&env(), fixture_->dir(0))); }

Task<> Renames(Env* env, std::string dir) {
  Fs& fs = env->fs();
  OPEN_OR_RETURN(a, fs, dir + "/a", OpenMode::kCreateNew);
  OPEN_OR_RETURN(b, fs, dir + "/b", OpenMode::kCreateNew);
  EXPECT_OK(co_await a->WriteAt(0, Buffer::Copy("from a")));
  EXPECT_OK(co_await b->WriteAt(0, Buffer::Copy("from b")));
  EXPECT_OK(co_await fs.Rename(dir + "/a", dir + "/b"));
  EXPECT_FALSE(co_await fs.Exists(dir + "/a"));
  const auto content = co_await ReadFile(&fs, dir + "/b");
  EXPECT_EQ(content.value_or(""), "from a");
  // Open files follow the file, not the name.
  Buffer into = env->Allocate(6);
  auto n = co_await b->ReadAt(0, into);
  EXPECT_EQ(n.value_or(0), 6u);
  EXPECT_EQ(into.view(), "from b");
  EXPECT_OK(co_await a->WriteAt(5, Buffer::Copy("A")));
  const auto changed = co_await ReadFile(&fs, dir + "/b");
  EXPECT_EQ(changed.value_or(""), "from A");
  EXPECT_CODE(Code::kNotFound, co_await fs.Rename(dir + "/a", dir + "/c"));
}
TEST_P(FsContract, RenameReplaces) { RunTask(Renames(&env(), fixture_->dir(0))); }

Task<> UnlinkedStaysUsable(Env* env, std::string dir) {
  Fs& fs = env->fs();
  OPEN_OR_RETURN(file, fs, dir + "/f", OpenMode::kCreateNew);
  EXPECT_OK(co_await file->WriteAt(0, Buffer::Copy("still here")));
  EXPECT_OK(co_await fs.Unlink(dir + "/f"));
  Buffer into = env->Allocate(10);
  const auto n = co_await file->ReadAt(0, into);
  EXPECT_EQ(n.value_or(0), 10u);
  EXPECT_EQ(into.view(), "still here");
}
TEST_P(FsContract, AnUnlinkedFileIsReadableWhileOpen) { RunTask(UnlinkedStaysUsable(&env(), fixture_->dir(0))); }

Task<> WholeFiles(Env* env, std::string dir) {
  Fs& fs = env->fs();
  EXPECT_CODE(Code::kNotFound, co_await ReadFile(&fs, dir + "/f"));
  EXPECT_OK(co_await WriteFileAtomic(&fs, dir + "/f", "a longer first version"));
  EXPECT_OK(co_await WriteFileAtomic(&fs, dir + "/f", "second"));
  auto content = co_await ReadFile(&fs, dir + "/f");
  EXPECT_EQ(content.value_or(""), "second");
  EXPECT_OK(co_await WriteFileAtomic(&fs, dir + "/f", ""));
  content = co_await ReadFile(&fs, dir + "/f");
  EXPECT_EQ(content.value_or("x"), "");
  const auto names = co_await fs.List(dir);
  EXPECT_EQ(names.value_or(std::vector<std::string>()), (std::vector<std::string>{"f"}));
}
TEST_P(FsContract, WholeFileHelpers) { RunTask(WholeFiles(&env(), fixture_->dir(0))); }

Task<> Locks(Env* env, std::string dir) {
  Fs& fs = env->fs();
  const std::string path = dir + "/LOCK";
  {
    auto first = fs.Lock(path);
    EXPECT_OK(first);
    const auto second = fs.Lock(path);
    EXPECT_CODE(Code::kUnavailable, second);
    if (!second) EXPECT_NE(second.error().message.find(path), std::string::npos) << second.error().message;
    EXPECT_OK(fs.Lock(dir + "/OTHER"));
  }
  EXPECT_OK(fs.Lock(path));
  co_return;
}
TEST_P(FsContract, LockIsExclusiveAndEndsWithItsHandle) { RunTask(Locks(&env(), fixture_->dir(0))); }

Task<> Spaces(Env* env, std::string dir) {
  const auto space = co_await env->fs().Space(dir);
  EXPECT_OK(space);
  if (space) {
    EXPECT_GT(space->total_bytes, 0u);
    EXPECT_LE(space->free_bytes, space->total_bytes);
  }
}
TEST_P(FsContract, Space) { RunTask(Spaces(&env(), fixture_->dir(0))); }

Task<Status> WriteOne(File* file, uint64_t offset, Buffer data) { co_return co_await file->WriteAt(offset, data); }
Task<> Parallel(Env* env, std::string dir) {
  Fs& fs = env->fs();
  OPEN_OR_RETURN(file, fs, dir + "/f", OpenMode::kCreateNew);
  constexpr size_t kPiece = 10'000;
  std::vector<Task<Status>> writes;
  for (uint32_t i = 0; i < 50; ++i) writes.push_back(WriteOne(file.get(), i * kPiece, Pattern(kPiece, i)));
  const auto results = co_await WhenAll(env, std::move(writes));
  for (const auto& r : results) EXPECT_OK(r);
  for (uint32_t i = 0; i < 50; ++i) {
    Buffer into = env->Allocate(kPiece);
    const auto n = co_await file->ReadAt(i * kPiece, into);
    EXPECT_EQ(n.value_or(0), kPiece);
    EXPECT_TRUE(into.view() == Pattern(kPiece, i).view());
  }
}
TEST_P(FsContract, OperationsOnOneFileMayOverlap) { RunTask(Parallel(&env(), fixture_->dir(0))); }

// The waiting task and the file die while the operation may still run elsewhere.
Task<> BigSyncedWrite(Env* env, std::string dir, bool* resumed) {
  OPEN_OR_RETURN(file, env->fs(), dir + "/f", OpenMode::kCreate);
  while (true) {
    EXPECT_OK(co_await file->WriteAt(0, Pattern(4 << 20, 1)));
    EXPECT_OK(co_await file->Sync());
    *resumed = true;
  }
}
Task<> StartBigWrites(Env* env, std::string dir, bool* resumed) {
  env->Spawn(BigSyncedWrite(env, dir, resumed));
  while (!*resumed) co_await env->Sleep(1ms);
}
TEST_P(FsContract, TeardownDuringAnOperation) {
  bool resumed = false;
  RunTask(StartBigWrites(&env(), fixture_->dir(0), &resumed));
  resumed = false;
  fixture_.reset();
  EXPECT_FALSE(resumed);
}

}  // namespace
}  // namespace picket::contract
