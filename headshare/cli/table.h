// Text tables: columns as wide as their cells, numbers to the right, at most 100 columns.
#pragma once

#include <string>
#include <vector>

namespace headshare {

enum class Align { kLeft, kRight };

struct Column {
  std::string heading;  // its words stand below one another where the cells are narrower
  Align align = Align::kRight;
  bool wraps = true;  // where the table is too wide; of those aligned to the left alone
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns);

  // One cell a column; missing ones are empty. Control characters of a cell are written out (visible.h).
  void add(std::vector<std::string> cells);
  // One text across all columns but the first.
  void add_spanning(std::string first, std::string text);

  // The headings, a rule, the rows. Cells of the widest left-aligned column are wrapped where the
  // table would be wider than `width`.
  std::string text(int width) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    bool spanning = false;
  };

  std::vector<int> column_widths(int width) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace headshare
