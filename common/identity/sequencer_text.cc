#include "common/identity/sequencer_text.h"

#include <google/protobuf/stubs/logging.h>

#include <optional>

namespace picket {
namespace {

constexpr std::string_view kTextPrefix = "picket1.";
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string Encode64(std::string_view in) {
  std::string out;
  uint32_t bits = 0;
  int held = 0;
  for (const char c : in) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (held += 8; held >= 6; held -= 6) out += kAlphabet[bits >> (held - 6) & 63];
  }
  if (held > 0) out += kAlphabet[bits << (6 - held) & 63];
  return out;
}

std::optional<std::string> Decode64(std::string_view in) {
  std::string out;
  uint32_t bits = 0;
  int held = 0;
  for (const char c : in) {
    const size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out += static_cast<char>(bits >> held & 255);
  }
  return out;
}

}  // namespace

std::string SequencerText(const proto::Sequencer& sequencer) {
  return std::string(kTextPrefix) + Encode64(sequencer.SerializeAsString());
}

Result<proto::Sequencer> ParseSequencer(std::string_view text) {
  auto fail = [] {
    return Fail(Error(Code::kTokenForged, "this is not a sequencer")
                    .WithNextStep("pass the text of PICKET_SEQUENCER as `picket lock` gave it"));
  };
  if (text.size() > kMaxSequencerText || !text.starts_with(kTextPrefix)) return fail();
  const auto bytes = Decode64(text.substr(kTextPrefix.size()));
  proto::Sequencer parsed;
  {
    // Text of the outside world: what is wrong with it is the caller's to say, not the parser's on standard error.
    const google::protobuf::LogSilencer quiet;
    if (!bytes || !parsed.ParseFromString(*bytes)) return fail();
  }
  // Only the known fields, each once and in order: what is not signed is not let in either.
  proto::Sequencer known;
  known.set_cluster(parsed.cluster());
  known.set_path(parsed.path());
  known.set_inode(parsed.inode());
  known.set_mode(parsed.mode());
  known.set_generation(parsed.generation());
  known.set_holder(parsed.holder());
  known.set_key(parsed.key());
  known.set_signature(parsed.signature());
  if (SequencerText(known) != text) return fail();
  return known;
}

}  // namespace picket
