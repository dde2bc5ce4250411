#include "client/cli/table.h"

#include <algorithm>

namespace picket::cli {
namespace {

// Columns on the screen, near enough: one for each UTF-8 character.
size_t Width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string Table::Render(size_t indent) const {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  if (std::any_of(titles.begin(), titles.end(), [](const std::string& title) { return !title.empty(); })) {
    lines.push_back(titles);
  }
  lines.insert(lines.end(), rows_.begin(), rows_.end());

  std::vector<size_t> widths(columns_.size());
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], Width(line[i]));
  }
  std::string out;
  for (const auto& line : lines) {
    std::string text(indent, ' ');
    for (size_t i = 0; i < line.size(); ++i) {
      const std::string pad(widths[i] - Width(line[i]), ' ');
      if (i > 0) text += "  ";
      text += columns_[i].align == Align::kRight ? pad + line[i] : line[i] + pad;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  }
  return out;
}

}  // namespace picket::cli
