// Writes a file, reads it back, and says what the cluster made of it. Copy it, and its CMakeLists.txt.
//
//   hello [PATH]        the master from $PICKET_MASTER or ~/.config/picket/client.toml
#include <picket/client.h>

#include <cstdio>
#include <string>

namespace {

// Prints what went wrong and what to do about it, in one line.
int Failed(const picket::client::Error& error) {
  std::fprintf(stderr, "hello: %s\n", error.ToString().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "/hello/world.txt";

  auto client = picket::client::Client::Connect();
  if (!client) return Failed(client.error());

  // Visible under its name at once, marked open; complete, durable and immutable after Close.
  auto writer = (*client)->Create(path, {.overwrite = true, .parents = true});
  if (!writer) return Failed(writer.error());
  for (int i = 1; i <= 1000; ++i) {
    if (auto written = (*writer)->Write("hello, line " + std::to_string(i) + "\n"); !written) {
      return Failed(written.error());
    }
  }
  auto status = (*writer)->Close();
  if (!status) return Failed(status.error());
  for (const auto& warning : (*writer)->warnings()) std::fprintf(stderr, "hello: warning: %s\n", warning.c_str());

  auto reader = (*client)->Open(path);
  if (!reader) return Failed(reader.error());
  char buffer[4096];
  uint64_t lines = 0;
  while (true) {
    auto size = (*reader)->Read(buffer, sizeof buffer);
    if (!size) return Failed(size.error());
    if (*size == 0) break;
    for (size_t i = 0; i < *size; ++i) lines += buffer[i] == '\n';
  }

  auto chunks = (*client)->Chunks(path);
  if (!chunks) return Failed(chunks.error());
  std::printf("%s: %llu bytes, %llu lines, %zu chunk(s) with %zu replicas each\n", path.c_str(),
              static_cast<unsigned long long>(status->length), static_cast<unsigned long long>(lines), chunks->size(),
              chunks->empty() ? 0 : chunks->front().replicas.size());
  return lines == 1000 ? 0 : 1;
}
