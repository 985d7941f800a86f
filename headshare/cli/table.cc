#include "headshare/cli/table.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "headshare/base/visible.h"
#include "headshare/cli/terminal.h"

namespace headshare {
namespace {

constexpr int kGap = 2;
constexpr int kNarrowestWrapped = 12;

std::vector<std::string> lines_of(const std::string& text, int width) {
  std::vector<std::string> lines;
  std::istringstream in(wrap(text, width, 0));
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

int widest_word(const std::string& text) {
  int widest = 0;
  std::istringstream in(text);
  for (std::string word; in >> word;) widest = std::max(widest, display_width(word));
  return widest;
}

std::string padded(const std::string& text, int width, Align align) {
  const std::string blanks(static_cast<size_t>(std::max(0, width - display_width(text))), ' ');
  return align == Align::kRight ? blanks + text : text + blanks;
}

void end_line(std::string* text) {
  text->erase(text->find_last_not_of(' ') + 1);
  *text += '\n';
}

}  // namespace

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (Column& column : columns_) column.heading = visible_line(column.heading);
}

void TextTable::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = visible_line(cell);  // before widths are taken
  rows_.push_back({std::move(cells)});
}

void TextTable::add_spanning(std::string first, std::string text) {
  rows_.push_back({{visible_line(first), visible_line(text)}, /*spanning=*/true});
}

std::vector<int> TextTable::column_widths(int width) const {
  std::vector<int> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    int most = widest_word(columns_[i].heading);
    for (const Row& row : rows_) {
      if (!row.spanning || i == 0) most = std::max(most, display_width(row.cells[i]));
    }
    widths.push_back(most);
  }
  const int total = std::accumulate(widths.begin(), widths.end(), kGap * (static_cast<int>(widths.size()) - 1));
  int* wrapped = nullptr;
  for (size_t i = 0; i < widths.size(); ++i) {
    const bool may_wrap = columns_[i].align == Align::kLeft && columns_[i].wraps;
    if (may_wrap && (wrapped == nullptr || widths[i] > *wrapped)) wrapped = &widths[i];
  }
  if (wrapped != nullptr && total > width) *wrapped = std::max(kNarrowestWrapped, *wrapped - (total - width));
  return widths;
}

std::string TextTable::text(int width) const {
  const std::vector<int> widths = column_widths(width);
  std::string out;
  const auto append_cells = [&](const std::vector<std::string>& cells, bool bottom) {
    std::vector<std::vector<std::string>> lines;
    size_t height = 1;
    for (size_t i = 0; i < cells.size(); ++i) {
      lines.push_back(lines_of(cells[i], widths[i]));
      height = std::max(height, lines.back().size());
    }
    for (size_t row = 0; row < height; ++row) {
      std::string line;
      for (size_t i = 0; i < lines.size(); ++i) {
        const size_t skipped = bottom ? height - lines[i].size() : 0;  // headings stand on the rule
        const bool there = row >= skipped && row - skipped < lines[i].size();
        line += (i == 0 ? "" : std::string(kGap, ' '));
        line += padded(there ? lines[i][row - skipped] : "", widths[i], columns_[i].align);
      }
      end_line(&line);
      out += line;
    }
  };
  std::vector<std::string> headings, rule;
  for (size_t i = 0; i < columns_.size(); ++i) {
    headings.push_back(columns_[i].heading);
    rule.emplace_back(static_cast<size_t>(widths[i]), '-');
  }
  append_cells(headings, /*bottom=*/true);
  append_cells(rule, /*bottom=*/false);
  for (const Row& row : rows_) {
    if (row.spanning) {
      const int indent = widths.front() + kGap;
      out += padded(row.cells[0], indent, Align::kLeft) + wrap(row.cells[1], width, indent) + "\n";
    } else {
      append_cells(row.cells, /*bottom=*/false);
    }
  }
  return out;
}

}  // namespace headshare
