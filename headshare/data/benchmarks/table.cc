#include "headshare/data/benchmarks/table.h"

#include <algorithm>
#include <set>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/valid_utf8.h"
#include "headshare/data/benchmarks/json_lines.h"

namespace headshare {
namespace {

constexpr size_t kMostRowBytes = size_t{64} << 20;

TableFormat format_by_name(const std::string& input) {
  const std::string name = input.ends_with(".gz") ? input.substr(0, input.size() - 3) : input;
  if (name.ends_with(".tsv")) return TableFormat::kTsv;
  if (name.ends_with(".csv")) return TableFormat::kCsv;
  if (name.ends_with(".jsonl")) return TableFormat::kJsonl;
  throw Error(join_text("which format has ", input,
                        "? Its name ends in none of .tsv, .csv and .jsonl (or these with .gz): rename it, or give "
                        "the format: tsv, tsv-quoted, csv or jsonl"));
}

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kMost = 12;
  std::string text;
  for (size_t i = 0; i < names.size() && i < kMost; ++i) text += (i == 0 ? "" : ", ") + brief_text(names[i]);
  return names.size() > kMost ? join_text(text, ", ... (", names.size(), " in all)") : text;
}

// Returns a JSON value as the text of a field; nothing for null.
std::optional<std::string> field_of(const nlohmann::json& value, const std::string& where, const std::string& name) {
  if (value.is_null()) return std::nullopt;
  if (value.is_string()) return value.get<std::string>();
  HS_CHECK(!value.is_structured(), where, ": ", brief_text(name), " must be a text, a number or a truth value, not ",
           value.is_object() ? "an object" : "a list");
  return value.dump();
}

std::string count_columns(size_t count) { return join_text(count, count == 1 ? " column" : " columns"); }

}  // namespace

const EnumNames<TableFormat>& table_format_names() {
  static const EnumNames<TableFormat> names = {{TableFormat::kByName, "auto"},
                                               {TableFormat::kTsv, "tsv"},
                                               {TableFormat::kQuotedTsv, "tsv-quoted"},
                                               {TableFormat::kCsv, "csv"},
                                               {TableFormat::kJsonl, "jsonl"}};
  return names;
}

TableReader::TableReader(const std::string& input, TableOptions options) : lines_(input), options_(std::move(options)) {
  if (options_.format == TableFormat::kByName) options_.format = format_by_name(input);
  if (options_.format == TableFormat::kJsonl) return;
  if (!options_.columns.empty()) {
    if (options_.heading_begins.empty()) return;
    ahead_ = read_fields();
    if (!ahead_ || ahead_->front() != options_.heading_begins) return;
  }
  read_heading();
}

void TableReader::read_heading() {
  std::optional<std::vector<std::string>> heading = next_fields();
  HS_CHECK(heading, lines_.name(), " is empty: a line with the names of the columns was expected");
  options_.columns = std::move(*heading);
  std::set<std::string> seen;
  for (const std::string& column : options_.columns) {
    HS_CHECK(
        column.find('\r') == std::string::npos, lines_.name(), ":", row_line_,
        ": the heading holds a carriage return: lines must end with a line feed (\\n or \\r\\n); save the table with "
        "line ends of Unix or Windows");
    HS_CHECK(seen.insert(column).second, lines_.name(), ":", row_line_, ": two columns have the name ",
             brief_text(column));
  }
}

std::string TableReader::where(const TableRow& row) const { return join_text(lines_.name(), ":", row.line); }

void TableReader::choose(std::vector<ColumnChoice> columns) {
  choices_ = std::move(columns);
  positions_.assign(choices_.size(), std::nullopt);
  if (options_.format == TableFormat::kJsonl) return;
  for (size_t i = 0; i < choices_.size(); ++i) {
    for (const std::string& name : choices_[i].names) {
      const auto found = std::find(options_.columns.begin(), options_.columns.end(), name);
      if (positions_[i] || found == options_.columns.end()) continue;
      positions_[i] = static_cast<size_t>(found - options_.columns.begin());
    }
    if (choices_[i].required && !positions_[i]) refuse_choice(choices_[i], lines_.name());
  }
}

void TableReader::refuse_choice(const ColumnChoice& choice, const std::string& where) const {
  const std::string& name = choice.names.at(0);
  const std::string others =
      choice.names.size() == 1
          ? ""
          : join_text(" (nor ", listed(std::vector<std::string>(choice.names.begin() + 1, choice.names.end())), ")");
  const std::string what = options_.format == TableFormat::kJsonl ? "record" : "table";
  std::string hint = did_you_mean(name, options_.columns);
  const auto quoted = [](const std::string& column) { return column.starts_with('"'); };
  if (options_.format == TableFormat::kTsv && std::any_of(options_.columns.begin(), options_.columns.end(), quoted)) {
    hint =
        "; the names stand in quotes, which are letters in TSV: if the file was written with quoting, read it as "
        "tsv-quoted";
  }
  if (options_.format == TableFormat::kCsv && options_.columns.size() == 1 &&
      options_.columns[0].find(';') != std::string::npos) {
    hint = "; the heading has semicolons: save the table with commas";
  }
  throw Error(join_text(where, ": the ", what, " has no column ", brief_text(name), others,
                        "; it has: ", listed(options_.columns), hint));
}

const std::string& TableReader::chosen_name(size_t choice) const {
  const std::optional<size_t>& position = positions_[choice];
  return position ? options_.columns[*position] : choices_[choice].names[0];
}

std::optional<TableRow> TableReader::next() {
  if (options_.format == TableFormat::kJsonl) return next_record();
  while (std::optional<std::vector<std::string>> fields = next_fields()) {
    if (options_.skip_short_rows && fields->size() < options_.columns.size()) {
      if (short_rows_++ == 0) first_short_ = row_line_;
      continue;
    }
    check_count(*fields);
    TableRow row{.line = row_line_};
    for (const std::optional<size_t>& position : positions_) {
      row.fields.push_back(position ? std::optional((*fields)[*position]) : std::nullopt);
    }
    return row;
  }
  return std::nullopt;
}

void TableReader::check_count(const std::vector<std::string>& fields) const {
  if (fields.size() == options_.columns.size()) return;
  std::string hint = "; a tab inside a text must become a blank";
  if (options_.format == TableFormat::kCsv) hint = "; a text with a comma in it must stand in double quotes";
  if (options_.format == TableFormat::kTsv && row_has_quotes_) {
    hint =
        "; the row has double quotes, which are letters in TSV: if the file was written with quoting, read it as "
        "tsv-quoted";
  }
  throw Error(join_text(lines_.name(), ":", row_line_, ": ", count_columns(fields.size()), ", not ",
                        options_.columns.size(), " (", listed(options_.columns), ")", hint));
}

// Returns the fields of the next row that is not empty, which begins at `row_line_`.
std::optional<std::vector<std::string>> TableReader::next_fields() {
  return ahead_ ? std::exchange(ahead_, std::nullopt) : read_fields();
}

std::optional<std::vector<std::string>> TableReader::read_fields() {
  std::optional<std::string_view> line = lines_.next();
  while (line && options_.columns.size() != 1 && without_return(*line).empty()) line = lines_.next();
  if (!line) return std::nullopt;
  row_line_ = lines_.number();
  row_has_quotes_ = line->find('"') != std::string_view::npos;
  std::vector<std::string> fields;
  if (options_.format == TableFormat::kTsv) {
    fields = split_at_tabs(without_return(*line));
  } else {
    fields = quoted_fields(*line, options_.format == TableFormat::kCsv ? ',' : '\t');
  }
  for (const std::string& field : fields) {
    const std::string where = join_text(lines_.name(), ":", row_line_);
    HS_CHECK(field.find('\0') == std::string::npos, where, ": a NUL byte: this is no text file (or is it UTF-16?)");
    const size_t valid = valid_utf8_prefix(field);
    HS_CHECK(valid == field.size(), where, ": column ", &field - fields.data() + 1, " is not UTF-8 from its byte ",
             valid, " on; convert the file to UTF-8");
  }
  return fields;
}

// Returns the fields of a row that begins with `line` and goes on over as many lines as its quotes are open.
std::vector<std::string> TableReader::quoted_fields(std::string_view line, char separator) {
  std::string row(without_return(line));
  std::vector<std::string> fields;
  size_t at = 0;
  while (true) {
    fields.push_back(row[at] == '"' ? quoted_field(&row, &at, fields.size() + 1)
                                    : plain_field(row, &at, separator, fields.size() + 1));
    if (at == row.size()) return fields;
    HS_CHECK(row[at] == separator, lines_.name(), ":", row_line_, ": column ", fields.size(),
             " goes on behind its closing quote; quotes inside a quoted field must be doubled");
    ++at;  // where the row ends here, one more field, an empty one, follows
  }
}

// Reads a quoted field. `*at` stands at the opening quote, and then behind the closing one.
std::string TableReader::quoted_field(std::string* row, size_t* at, size_t column) {
  std::string field;
  while (true) {
    ++*at;
    if (*at == row->size()) {
      const std::optional<std::string_view> more = lines_.next();
      HS_CHECK(more, lines_.name(), ":", row_line_, ": column ", column, " begins with a quote that is never closed");
      HS_CHECK(row->size() + more->size() < kMostRowBytes, lines_.name(), ":", row_line_, ": column ", column,
               " begins with a quote that is still open after ", row->size(), " bytes");
      row->append("\n").append(without_return(*more));
    }
    if ((*row)[*at] == '"') {
      ++*at;
      if (*at == row->size() || (*row)[*at] != '"') return field;
    }
    field += (*row)[*at];
  }
}

std::string TableReader::plain_field(const std::string& row, size_t* at, char separator, size_t column) const {
  const size_t end = std::min(row.find(separator, *at), row.size());
  std::string field = row.substr(*at, end - *at);
  HS_CHECK(field.find('"') == std::string::npos, lines_.name(), ":", row_line_, ": column ", column,
           " has a quote inside but does not begin with one; put the field in quotes and double those inside");
  *at = end;
  return field;
}

std::optional<TableRow> TableReader::next_record() {
  const nlohmann::json record = next_json_line(&lines_);
  if (record.is_null()) return std::nullopt;
  row_line_ = lines_.number();
  const std::string where = lines_.where();
  options_.columns.clear();
  for (const auto& item : record.items()) options_.columns.push_back(item.key());
  TableRow row{.line = row_line_};
  for (size_t i = 0; i < choices_.size(); ++i) {
    const auto& names = choices_[i].names;
    const auto name = std::find_if(names.begin(), names.end(), [&](const auto& one) { return record.contains(one); });
    positions_[i] = std::nullopt;
    if (name == names.end()) {
      if (choices_[i].required) refuse_choice(choices_[i], where);
      row.fields.emplace_back();
    } else {
      const auto place = std::find(options_.columns.begin(), options_.columns.end(), *name);
      positions_[i] = static_cast<size_t>(place - options_.columns.begin());
      row.fields.push_back(field_of(record.at(*name), where, *name));
    }
  }
  return row;
}

}  // namespace headshare
