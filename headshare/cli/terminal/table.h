// This class lays out text tables: columns as wide as their cells, numbers to the right, folded to the width of the
// screen.
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

  // Adds a row, one cell a column; missing ones are empty. Control characters of a cell are written out (visible.h).
  void add(std::vector<std::string> cells);
  // Adds a row with one text across all columns but the first.
  void add_spanning(std::string first, std::string text);

  // Returns the headings, a rule, the rows. Where the table would be wider than `width`, cells of the widest
  // left-aligned column are wrapped; where that is not enough, the columns go on in further tables below, each with the
  // first column.
  std::string text(int width) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    bool spanning = false;
  };

  // These are some of the columns, by their indices.
  using Columns = std::vector<size_t>;
  std::vector<int> column_widths(const Columns& columns, int width) const;
  std::vector<Columns> folded(int width) const;  // columns that stand side by side
  std::string part(const Columns& columns, int width, bool with_spanning) const;
  void append_row(const std::vector<std::string>& cells, const Columns& columns, const std::vector<int>& widths,
                  bool bottom, std::string* out) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

// Returns the text of a field between tabs: in quotes where it holds a tab, a line end or a quote, as tsv-quoted reads
// it.
std::string tsv_field(const std::string& text);

}  // namespace headshare
