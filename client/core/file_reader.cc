#include "client/core/file_reader.h"

#include <algorithm>
#include <cstring>

#include "client/core/open_file.h"

namespace picket {

FileReader::FileReader(std::shared_ptr<OpenFile> file) : file_(std::move(file)) {}
FileReader::~FileReader() = default;

Task<Result<Buffer>> FileReader::ReadAt(uint64_t offset, size_t size) { return OpenFile::ReadAt(file_, offset, size); }
Task<Result<Buffer>> FileReader::Read() { return OpenFile::ReadNext(file_); }
void FileReader::Seek(uint64_t offset) { file_->Seek(offset); }
Task<Result<uint64_t>> FileReader::Length() { return OpenFile::Length(file_); }
const proto::FileStatus& FileReader::status() const { return file_->status(); }

}  // namespace picket
