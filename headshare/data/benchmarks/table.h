// This header reads tables of named columns: TSV, CSV and JSONL files, plain or .gz, row by row.
//
//   tsv         one row a line, columns apart by tabs, quotes are letters like any other (GLUE's form)
//   tsv-quoted  tabs, with CSV's quoting
//   csv         RFC 4180: commas; a field in double quotes may hold commas, line ends
//               (always read as "\n") and, doubled, quotes
//   jsonl       one JSON object a line; texts as they are, numbers and truth values as JSON writes them,
//               null and absent members as no field at all
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/base/options/field.h"
#include "headshare/data/line_reader.h"

namespace headshare {

enum class TableFormat { kByName, kTsv, kQuotedTsv, kCsv, kJsonl };

const EnumNames<TableFormat>& table_format_names();

struct TableOptions {
  TableFormat format = TableFormat::kByName;  // by the ending: .tsv, .csv, .jsonl, each also with .gz
  // These are the names of the columns where the file has no heading line. JSONL has names of its own.
  std::vector<std::string> columns = {};
  // Where `columns` are given, a first line that begins with this name is a heading all the same.
  std::string heading_begins = "";
  // Rows with too few fields are left out and counted, not refused (GLUE's QQP has some).
  bool skip_short_rows = false;
};

// This is a column asked for.
struct ColumnChoice {
  std::vector<std::string> names;  // the first that the table has
  bool required = true;
};

struct TableRow {
  uint64_t line = 0;                                    // where it begins, from 1
  std::vector<std::optional<std::string>> fields = {};  // of the columns chosen, in their order
};

class TableReader {
 public:
  // Reads the heading. Throws Error for an unknown ending, an empty file, a heading with a name twice.
  explicit TableReader(const std::string& input, TableOptions options = {});

  // Chooses the columns that rows have from now on. Throws Error, with the nearest name, when a required column is
  // missing (JSONL: the row that lacks it does).
  void choose(std::vector<ColumnChoice> columns);

  // Returns the next row; nothing at the end. Throws Error naming file and line for: fewer or more fields than the
  // heading, text that is not UTF-8, NUL bytes, quoting that RFC 4180 does not know, what is no JSON object. Empty
  // lines are skipped, unless the table has a single column.
  std::optional<TableRow> next();

  TableFormat format() const { return options_.format; }
  const std::vector<std::string>& columns() const { return options_.columns; }  // JSONL: of the last row
  const std::string& chosen_name(size_t choice) const;  // the name taken; the first where there is none
  const std::string& name() const { return lines_.name(); }
  std::string where(const TableRow& row) const;  // "train.tsv:17"

  uint64_t short_rows() const { return short_rows_; }        // left out
  uint64_t first_short_row() const { return first_short_; }  // its line

 private:
  void read_heading();
  std::optional<std::vector<std::string>> next_fields();
  std::optional<std::vector<std::string>> read_fields();
  std::vector<std::string> quoted_fields(std::string_view line, char separator);
  std::string quoted_field(std::string* row, size_t* at, size_t column);
  std::string plain_field(const std::string& row, size_t* at, char separator, size_t column) const;
  std::optional<TableRow> next_record();
  void check_count(const std::vector<std::string>& fields) const;
  [[noreturn]] void refuse_choice(const ColumnChoice& choice, const std::string& where) const;

  LineReader lines_;
  TableOptions options_;
  std::vector<ColumnChoice> choices_;
  std::vector<std::optional<size_t>> positions_;   // of each choice among the columns (JSONL: of the last row)
  std::optional<std::vector<std::string>> ahead_;  // a first row, read to see whether it is a heading
  uint64_t row_line_ = 0;
  bool row_has_quotes_ = false;
  uint64_t short_rows_ = 0;
  uint64_t first_short_ = 0;
};

}  // namespace headshare
