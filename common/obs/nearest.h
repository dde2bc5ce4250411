// What somebody may have meant by a name that does not exist.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace picket {

// Edits (insert, delete, replace, swap of neighbours) that turn one word into the other.
size_t EditDistance(std::string_view a, std::string_view b);

// The known name with the fewest edits, the first of equals; empty when none is near enough to be meant.
std::string NearestName(std::string_view word, std::span<const std::string> known);

// "; did you mean X?", or nothing.
std::string DidYouMean(std::string_view word, std::span<const std::string> known);

}  // namespace picket
