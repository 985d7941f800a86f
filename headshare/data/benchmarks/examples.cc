#include "headshare/data/benchmarks/examples.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/number.h"
#include "headshare/metrics/translation/words.h"

namespace headshare {
namespace {

constexpr size_t kMostClasses = 1000;

// These are the places of a row's fields, in the order of `chosen_columns`.
enum Chosen : size_t { kFirst, kLabel, kIndex, kSecond };

std::vector<ColumnChoice> chosen_columns(const ColumnChoice& first, const ColumnChoice& second,
                                         const ColumnChoice& label) {
  std::vector<ColumnChoice> columns = {first, label, {.names = {"index", "idx"}, .required = false}};
  if (!second.names.empty()) columns.push_back(second);
  return columns;
}

// Reads all rows of one table.
class ExampleReader {
 public:
  ExampleReader(TableReader* table, bool lenient) : table_(*table), lenient_(lenient) {}

  // Calls `set_label(label, where, example)` for every row that has one.
  template <class SetLabel>
  TextExamples read(bool pairs, const SetLabel& set_label) {
    TextExamples examples{.source = table_.name(), .pairs = pairs};
    while (std::optional<TableRow> row = table_.next()) {
      TextExample example;
      example.first = text_of(&*row, kFirst);
      if (pairs) example.second = text_of(&*row, kSecond);
      example.index = index_of(*row, examples.items.size());
      const std::optional<std::string>& label = row->fields[kLabel];
      if (examples.items.empty()) examples.labelled = label.has_value();
      HS_CHECK(label.has_value() == examples.labelled, table_.where(*row),
               label ? ": has a label, but the rows before have none" : ": has no label, but the rows before have one");
      if (label) {
        HS_CHECK(!is_blank(*label), table_.where(*row), ": the label is empty");
        set_label(*label, table_.where(*row), &example);
      }
      note_quotes(example.first);
      examples.items.push_back(std::move(example));
    }
    HS_CHECK(!examples.items.empty(), table_.name(), " has no rows of data");
    examples.notes = notes(examples.items.size());
    return examples;
  }

 private:
  std::string text_of(TableRow* row, Chosen which) {
    std::optional<std::string>& text = row->fields[which];
    if (!text || is_blank(*text)) {
      HS_CHECK(lenient_, table_.where(*row), ": the ", which == kFirst ? "" : "second ", "text (column '",
               table_.chosen_name(which), "') is empty; fill it or take the row out");
      ++empty_texts_;
    }
    return text ? std::move(*text) : "";
  }

  int64_t index_of(const TableRow& row, size_t number) const {
    const std::optional<std::string>& text = row.fields[kIndex];
    if (!text) return static_cast<int64_t>(number);
    const std::optional<int64_t> index = number_in<int64_t>(*text);
    HS_CHECK(index && *index >= 0, table_.where(row), ": the index must be a whole number from 0, not ",
             brief_text(*text));
    return *index;
  }

  void note_quotes(const std::string& text) {
    if (text.size() >= 2 && text.starts_with('"') && text.ends_with('"')) ++quoted_texts_;
  }

  std::vector<std::string> notes(size_t rows) const {
    std::vector<std::string> list;
    if (table_.short_rows() > 0) {
      list.push_back(join_text(table_.name(), ": ", table_.short_rows(),
                               " rows with too few columns were left out, the first in line ",
                               table_.first_short_row()));
    }
    if (empty_texts_ > 0) list.push_back(join_text(table_.name(), ": ", empty_texts_, " texts are empty"));
    if (table_.format() == TableFormat::kTsv && rows > 1 && quoted_texts_ == rows) {
      list.push_back(join_text(table_.name(),
                               ": every text stands in double quotes, which are letters in TSV; if the "
                               "file was written with quoting, read it as tsv-quoted"));
    }
    return list;
  }

  TableReader& table_;
  bool lenient_;
  size_t quoted_texts_ = 0;
  size_t empty_texts_ = 0;
};

TableFormat format_of(const TaskInfo& task, const std::string& path) {
  const std::string name = path.ends_with(".gz") ? path.substr(0, path.size() - 3) : path;
  for (const char* ending : {".tsv", ".csv", ".jsonl"}) {
    if (name.ends_with(ending)) return TableFormat::kByName;
  }
  return task.suite == Suite::kGlue ? TableFormat::kTsv : TableFormat::kJsonl;
}

// CoLA's training and development files have no heading, its test file has one.
TableOptions table_options(const TaskInfo& task, const std::string& path) {
  return {.format = format_of(task, path),
          .columns = task.columns,
          .heading_begins = "index",
          .skip_short_rows = task.lenient};
}

std::string listed_labels(const std::vector<std::string>& labels) {
  constexpr size_t kMost = 20;
  std::string list;
  for (size_t i = 0; i < labels.size() && i < kMost; ++i) list += (i == 0 ? "" : ", ") + labels[i];
  return labels.size() > kMost ? join_text(list, ", ... (", labels.size(), " in all)") : list;
}

// Tells whether label `a` comes before label `b`: whole numbers come first, by size ("10" behind "9"), then texts by
// their bytes.
bool comes_before(const std::string& a, const std::string& b) {
  const auto key = [](const std::string& text) {
    const std::optional<int64_t> number = number_in<int64_t>(text);
    return std::tuple(!number, number.value_or(0), std::string_view(text));
  };
  return key(a) < key(b);
}

// Returns the label without blanks around it and, of a whole number, without a fraction of zeros: programs write 1.0
// for 1 where a column has gaps.
std::string_view plain_label(const std::string& label) {
  const std::string_view text = strip(label);
  const size_t point = text.find('.');
  if (point == std::string_view::npos || point + 1 == text.size()) return text;
  const bool only_zeros = text.find_first_not_of('0', point + 1) == std::string_view::npos;
  return only_zeros && number_in<int64_t>(text.substr(0, point)) ? text.substr(0, point) : text;
}

std::vector<std::string> classes_of(const std::vector<std::string>& found, const std::string& source) {
  std::vector<std::string> classes = found;
  std::sort(classes.begin(), classes.end(), comes_before);
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  HS_CHECK(classes.size() <= kMostClasses, source, ": ", classes.size(), " different labels in ", found.size(),
           " rows, more than ", kMostClasses, "; is this column a number or a text?");
  // "yes" and "yes ", or 1 and 1.0, mean the same, and would be two classes.
  std::map<std::string_view, std::string> seen;  // the plain label -> as it stands
  for (const std::string& label : classes) {
    const auto [other, is_new] = seen.try_emplace(plain_label(label), label);
    const bool same_text = strip(other->second) == strip(label);
    HS_CHECK(is_new, source, ": the labels ", brief_text(other->second), " and ", brief_text(label), " differ only by ",
             same_text ? "white space around them" : "zeros behind the point",
             "; write one of them alike in every row");
  }
  return classes;
}

}  // namespace

int32_t find_label(const std::string& text, const std::vector<std::string>& labels, const std::string& where) {
  const auto found = std::find(labels.begin(), labels.end(), text);
  if (found != labels.end()) return static_cast<int32_t>(found - labels.begin());
  std::string hint = text.size() < 3 ? "" : did_you_mean(text, labels);  // any digit is near to any other
  if (text.starts_with('"'))
    hint = "; quotes are letters in TSV; if the file was written with quoting, read it as tsv-quoted";
  throw Error(join_text(where, ": unknown label ", brief_text(text), hint, "; known are ", listed_labels(labels)));
}

double parse_number(const std::string& text, const std::string& where) {
  const std::optional<double> number = number_in<double>(text);
  HS_CHECK(number && std::isfinite(*number), where, ": ", brief_text(text), " is not a finite number");
  return *number;
}

TextExamples read_examples(const TaskInfo& task, const std::string& path) {
  HS_CHECK(task.form == TaskForm::kText, task.title, " is not a task of texts and labels");
  TableReader table(path, table_options(task, path));
  table.choose(chosen_columns(task.first, task.second, task.label));
  ExampleReader reader(&table, task.lenient);
  const auto set_label = [&](const std::string& label, const std::string& where, TextExample* example) {
    if (!task.labels.empty()) {
      example->label = find_label(label, task.labels, where);
      return;
    }
    example->number = parse_number(label, where);
    HS_CHECK(task.least <= example->number && example->number <= task.most, where, ": the score ", label,
             " is outside ", task.least, " to ", task.most);
  };
  TextExamples examples = reader.read(!task.second.names.empty(), set_label);
  examples.labels = task.labels;
  return examples;
}

Fields fields(OwnTable& o) {
  return {
      field("text-column", &o.text, "the column with the text, or the first of two"),
      field("pair-column", &o.pair, "the column with the second text, where there are two"),
      field("label-column", &o.label, "the column with the label or the number"),
      field("table-format", &o.format,
            "tsv takes quotes as letters, tsv-quoted and csv as RFC 4180 does; auto: by the file's ending",
            table_format_names()),
  };
}

TextExamples read_own_table(const OwnTable& options, const std::string& path, const std::vector<std::string>& labels,
                            LabelColumn column) {
  HS_CHECK(!options.text.empty(), "text-column is empty: which column of ", path, " has the text?");
  HS_CHECK(!options.label.empty() || column == LabelColumn::kMayBeMissing, "label-column is empty: which column of ",
           path, " has the labels? Without them nothing can be learned");
  TableReader table(path, {.format = options.format});
  const ColumnChoice pair{.names = options.pair.empty() ? std::vector<std::string>() : std::vector{options.pair}};
  table.choose(chosen_columns({.names = {options.text}}, pair,
                              {.names = options.label.empty() ? std::vector<std::string>() : std::vector{options.label},
                               .required = column == LabelColumn::kRequired}));
  ExampleReader reader(&table, /*lenient=*/false);
  std::vector<std::string> found;  // of each row, where the classes are not known yet
  const auto set_label = [&](const std::string& label, const std::string& where, TextExample* example) {
    if (options.numbers) {
      example->number = parse_number(label, where);
    } else if (!labels.empty()) {
      example->label = find_label(label, labels, where);
    } else {
      found.push_back(label);
    }
  };
  TextExamples examples = reader.read(!options.pair.empty(), set_label);
  if (column == LabelColumn::kRequired) {
    HS_CHECK(examples.labelled, examples.source, ": no row has a label in '", options.label, "'");
  } else if (!examples.labelled) {
    examples.labels = labels;
    if (options.label.empty()) return examples;
    examples.notes.push_back(
        join_text(examples.source, " has no column '", options.label, "': its texts are answered, and not scored"));
    return examples;
  }
  if (options.numbers) return examples;
  examples.labels = labels.empty() ? classes_of(found, examples.source) : labels;
  for (size_t i = 0; i < found.size(); ++i) {
    const auto place = std::lower_bound(examples.labels.begin(), examples.labels.end(), found[i], comes_before);
    examples.items[i].label = static_cast<int32_t>(place - examples.labels.begin());
  }
  return examples;
}

}  // namespace headshare
