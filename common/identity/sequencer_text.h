// A sequencer as text: "picket1." and the message in base64url, without padding. Exactly one text stands for a
// sequencer. Without keys: whether it is genuine, a server says (token_signer.h).
#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "proto/common.pb.h"

namespace picket {

inline constexpr size_t kMaxSequencerText = 16 << 10;  // a path is at most 8 KiB

std::string SequencerText(const proto::Sequencer& sequencer);
// kTokenForged for what is not one.
Result<proto::Sequencer> ParseSequencer(std::string_view text);

}  // namespace picket
