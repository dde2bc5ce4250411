// Rows of text in aligned columns, two spaces apart.
#pragma once

#include <string>
#include <vector>

namespace picket::cli {

class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // With the titles as the first line unless all are empty; each line indented, none with blanks at its end.
  std::string Render(size_t indent = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace picket::cli
