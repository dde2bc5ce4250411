#include "common/obs/nearest.h"

#include <algorithm>
#include <vector>

namespace picket {

size_t EditDistance(std::string_view a, std::string_view b) {
  // Three rows of the usual table: swaps look two rows back.
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string NearestName(std::string_view word, std::span<const std::string> known) {
  constexpr size_t kLongestWord = 64;  // longer ones are no typing mistakes
  if (word.size() > kLongestWord) return "";
  const std::string* best = nullptr;
  size_t least = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& name : known) {
    const size_t distance = EditDistance(word, name);
    // More than half of the letters changed is another word.
    if (distance < least && distance * 2 <= std::max(word.size(), name.size())) {
      best = &name;
      least = distance;
    }
  }
  return best == nullptr ? "" : *best;
}

std::string DidYouMean(std::string_view word, std::span<const std::string> known) {
  const std::string name = NearestName(word, known);
  return name.empty() ? "" : "; did you mean " + name + "?";
}

}  // namespace picket
