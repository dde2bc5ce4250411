#include "common/env/fs.h"

namespace picket {

Task<Result<std::string>> ReadFile(Fs* fs, std::string path) {
  auto file = co_await fs->Open(path, OpenMode::kReadOnly);
  if (!file) co_return Fail(file.error());
  auto size = co_await (*file)->Size();
  if (!size) co_return Fail(size.error());
  Buffer buffer = Buffer::Allocate(*size);
  auto n = co_await (*file)->ReadAt(0, buffer);
  if (!n) co_return Fail(n.error());
  co_return std::string(buffer.view().substr(0, *n));
}

Task<Status> WriteFileAtomic(Fs* fs, std::string path, std::string content) {
  const std::string temporary = path + ".tmp";
  const size_t slash = path.rfind('/');
  const std::string dir = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  {
    auto file = co_await fs->Open(temporary, OpenMode::kCreate);
    if (!file) co_return Fail(file.error());
    PICKET_CO_TRY(co_await (*file)->Truncate(0));
    Buffer bytes = Buffer::Copy(content);
    PICKET_CO_TRY(co_await (*file)->WriteAt(0, bytes));
    PICKET_CO_TRY(co_await (*file)->Sync());
  }
  PICKET_CO_TRY(co_await fs->Rename(temporary, path));
  co_return co_await fs->SyncDir(dir);
}

}  // namespace picket
