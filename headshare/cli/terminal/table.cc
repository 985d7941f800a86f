#include "headshare/cli/terminal/table.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "headshare/base/strings/visible.h"
#include "headshare/cli/terminal/terminal.h"

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

int total_width(const std::vector<int>& widths) {
  return std::accumulate(widths.begin(), widths.end(), kGap * (static_cast<int>(widths.size()) - 1));
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

std::vector<int> TextTable::column_widths(const Columns& columns, int width) const {
  std::vector<int> widths;
  for (const size_t i : columns) {
    int most = widest_word(columns_[i].heading);
    for (const Row& row : rows_) {
      if (!row.spanning || i == 0) most = std::max(most, display_width(row.cells[i]));
    }
    widths.push_back(most);
  }
  const int total = total_width(widths);
  int* wrapped = nullptr;
  for (size_t at = 0; at < columns.size(); ++at) {
    const Column& column = columns_[columns[at]];
    const bool may_wrap = column.align == Align::kLeft && column.wraps;
    if (may_wrap && (wrapped == nullptr || widths[at] > *wrapped)) wrapped = &widths[at];
  }
  if (wrapped != nullptr && total > width) *wrapped = std::max(kNarrowestWrapped, *wrapped - (total - width));
  return widths;
}

std::vector<TextTable::Columns> TextTable::folded(int width) const {
  std::vector<Columns> parts = {{0}};
  for (size_t i = 1; i < columns_.size(); ++i) {
    Columns longer = parts.back();
    longer.push_back(i);
    const bool fits = longer.size() == 2 || total_width(column_widths(longer, width)) <= width;
    fits ? parts.back() = longer : parts.emplace_back(Columns{0, i});
  }
  return parts;
}

void TextTable::append_row(const std::vector<std::string>& cells, const Columns& columns,
                           const std::vector<int>& widths, bool bottom, std::string* out) const {
  std::vector<std::vector<std::string>> lines;
  size_t height = 1;
  for (size_t at = 0; at < columns.size(); ++at) {
    lines.push_back(lines_of(cells[columns[at]], widths[at]));
    height = std::max(height, lines.back().size());
  }
  for (size_t row = 0; row < height; ++row) {
    std::string line;
    for (size_t at = 0; at < lines.size(); ++at) {
      const size_t skipped = bottom ? height - lines[at].size() : 0;  // headings stand on the rule
      const bool there = row >= skipped && row - skipped < lines[at].size();
      line += (at == 0 ? "" : std::string(kGap, ' '));
      line += padded(there ? lines[at][row - skipped] : "", widths[at], columns_[columns[at]].align);
    }
    end_line(&line);
    *out += line;
  }
}

std::string TextTable::part(const Columns& columns, int width, bool with_spanning) const {
  const std::vector<int> widths = column_widths(columns, width);
  std::vector<std::string> headings;
  std::vector<std::string> rule(columns_.size());
  for (const Column& column : columns_) headings.push_back(column.heading);
  for (size_t at = 0; at < columns.size(); ++at) rule[columns[at]] = std::string(static_cast<size_t>(widths[at]), '-');
  std::string out;
  append_row(headings, columns, widths, /*bottom=*/true, &out);
  append_row(rule, columns, widths, /*bottom=*/false, &out);
  for (const Row& row : rows_) {
    if (!row.spanning) {
      append_row(row.cells, columns, widths, /*bottom=*/false, &out);
    } else if (with_spanning) {
      const int indent = widths.front() + kGap;
      out += padded(row.cells[0], indent, Align::kLeft) + wrap(row.cells[1], width, indent) + "\n";
    }
  }
  return out;
}

std::string TextTable::text(int width) const {
  std::string out;
  for (const Columns& columns : folded(width)) {
    out += (out.empty() ? "" : "\n") + part(columns, width, /*with_spanning=*/out.empty());
  }
  return out;
}

std::string tsv_field(const std::string& text) {
  if (text.find_first_of("\t\n\r\"") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace headshare
