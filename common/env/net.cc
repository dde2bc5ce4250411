#include "common/env/net.h"

#include <charconv>

namespace picket {

std::string Endpoint::ToString() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<Endpoint> ParseEndpoint(std::string_view text, uint16_t default_port) {
  auto bad = [&](const char* why) {
    return Fail(Code::kInvalidArgument, "\"" + std::string(text) + "\" is not HOST:PORT: " + why);
  };
  std::string_view host = text;
  std::string_view port;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return bad("the bracket is not closed");
    host = text.substr(1, end - 1);
    std::string_view rest = text.substr(end + 1);
    if (!rest.empty() && rest[0] != ':') return bad("a colon must follow the bracket");
    if (!rest.empty()) port = rest.substr(1);
  } else if (const size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (host.find(':') != std::string_view::npos) return bad("write an IPv6 address in brackets");
  }
  if (host.empty()) return bad("the host is missing");
  uint16_t number = default_port;
  if (!port.empty()) {
    auto [end, ec] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (ec != std::errc() || end != port.data() + port.size()) return bad("the port is not 0 to 65535");
  } else if (default_port == 0) {
    return bad("the port is missing");
  }
  return Endpoint(std::string(host), number);
}

size_t Payload::size() const {
  if (auto* b = std::get_if<Buffer>(&data_)) return b->size();
  if (auto* f = std::get_if<FileSlice>(&data_)) return f->size;
  return 0;
}

Buffer Payload::buffer() const {
  PICKET_CHECK(!std::holds_alternative<FileSlice>(data_));
  if (auto* b = std::get_if<Buffer>(&data_)) return *b;
  return Buffer();
}

}  // namespace picket
