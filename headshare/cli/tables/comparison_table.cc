#include "headshare/cli/tables/comparison_table.h"

#include <algorithm>
#include <span>
#include <sstream>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/base/strings/visible.h"
#include "headshare/cli/terminal/table.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/report/statistics/benchmarks_table.h"
#include "headshare/report/statistics/comparability.h"
#include "headshare/report/statistics/embedding_columns.h"
#include "headshare/report/statistics/headline.h"
#include "headshare/report/statistics/notes.h"
#include "headshare/report/statistics/speeds.h"
#include "headshare/report/statistics/task_columns.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

// A file may hold any name; with these the tables stay within 100 columns.
constexpr size_t kLongestName = 21;  // "mhe_add+hash-lsh-proj"
constexpr size_t kLongestSetting = 22;
constexpr size_t kLongestScore = 20;
constexpr size_t kLongestHeading = 40;
constexpr size_t kTasksSideBySide = 5;
constexpr size_t kBenchmarksSideBySide = 3;

using Rows = std::vector<VariantRow>;

std::string name_cell(const VariantRow& row, const VariantRow* best) {
  return name_within(row.variant, kLongestName) + (&row == best ? " *" : "");
}

// Sets the best variant's line in bold; this comes after the layout, which counts columns.
std::string with_best_in_bold(const std::string& table, const VariantRow* best) {
  if (best == nullptr) return table;
  const std::string marked = name_cell(*best, best) + " ";
  std::istringstream in(table);
  std::string made;
  for (std::string line; std::getline(in, line);) {
    made += (line.starts_with(marked) ? bold(line, Stream::kOut) : line) + "\n";
  }
  return made;
}

std::string quality_table(const Results& results, const Rows& rows, const VariantRow* best) {
  const bool settings = any_setting(results);
  const std::vector<std::string> scores = score_names(rows);
  std::vector<Column> columns = {{.heading = noun(results), .align = Align::kLeft, .wraps = false}};
  if (settings) columns.push_back({.heading = "setting", .align = Align::kLeft});
  const bool benchmark = !results.subject.tasks.empty();  // the paper's table
  if (benchmark) columns.push_back({.heading = "attention parameters"});
  columns.push_back({.heading = "seeds"});
  const bool loss = compares_loss(results.subject) && !settings;  // a setting takes its place
  if (loss) columns.push_back({.heading = compared_name(results.subject)});
  columns.push_back({.heading = quality_name(results.subject)});
  const bool interval = shows_quality_interval(results) && !settings;
  if (interval) columns.push_back({.heading = "[95%]"});
  for (const std::string& name : scores) {
    columns.push_back({.heading = abbreviated(score_heading(name), kLongestScore)});
    if (shows_score_interval(rows, name)) columns.push_back({.heading = "[95%]"});
  }
  TextTable table(columns);
  for (const VariantRow& row : rows) {
    std::vector<std::string> cells = {name_cell(row, best)};
    if (settings) cells.push_back(abbreviated(row.best.setting, kLongestSetting));
    if (benchmark) cells.push_back(count_text(row.size.attention_parameters));
    cells.push_back(seeds_text(row.best));
    if (loss) cells.push_back(summary_text(row.best.test_loss, 4));
    cells.push_back(quality_text(results.subject, row.best.quality));
    if (interval) cells.push_back(quality_interval_text(results.subject, row.best));
    for (const std::string& name : scores) {
      cells.push_back(score_text(row.best, name));
      if (shows_score_interval(rows, name)) cells.push_back(score_interval_text(row.best, name));
    }
    table.add(cells);
  }
  return table.text(terminal_width(Stream::kOut));
}

std::string reference_table(const Results& results, const Rows& rows, const VariantRow* best) {
  const bool p_values = std::any_of(rows.begin(), rows.end(), [](const VariantRow& row) {
    return row.against_reference && row.against_reference->p_value();
  });
  std::vector<Column> columns = {{.heading = noun(results), .align = Align::kLeft, .wraps = false},
                                 {.heading = difference_heading(results) + " [95%]"}};
  if (p_values) columns.push_back({.heading = "p"});
  columns.push_back({.heading = "PRR"});
  columns.push_back({.heading = "PEoP"});
  TextTable table(columns);
  for (const VariantRow& row : rows) {
    const std::string interval = row.against_reference && row.trained()
                                     ? difference_interval_text(results.subject, row.against_reference->interval())
                                     : "";
    std::vector<std::string> cells = {name_cell(row, best),
                                      difference_text(results.subject, row) + (interval.empty() ? "" : " " + interval)};
    if (p_values) {
      cells.push_back(row.trained() && row.against_reference && row.against_reference->p_value()
                          ? p_text(*row.against_reference->p_value())
                          : "");
    }
    cells.push_back(retention_text(row.prr, 1));
    cells.push_back(retention_text(row.peop, 2));
    table.add(cells);
  }
  return table.text(terminal_width(Stream::kOut));
}

std::string cost_table(const Results& results, const Rows& rows, const VariantRow* best) {
  const bool decoding = any_decoding(results);
  const BusySpeeds busy = busy_speeds(results, rows);
  std::vector<Column> columns = {{.heading = noun(results), .align = Align::kLeft, .wraps = false},
                                 {.heading = "attention parameters"},
                                 {.heading = "total"},
                                 {.heading = "attention memory, saved"}};
  if (decoding) columns.push_back({.heading = "cache B/token"});
  const bool reads_source = any_source_cache(results);
  if (reads_source) columns.push_back({.heading = "source cache"});
  columns.push_back({.heading = "peak memory"});
  const bool on_card = any_device_memory(results);
  if (on_card) columns.push_back({.heading = "card memory"});
  columns.push_back({.heading = "training " + training_unit(results.subject) + "/s"});
  if (decoding) columns.push_back({.heading = "decoding tokens/s"});
  const bool writes = any_output_speed(results);
  if (writes) columns.push_back({.heading = "translating sentences/s"});
  TextTable table(columns);
  for (const VariantRow& row : rows) {
    std::vector<std::string> cells = {
        name_cell(row, best), count_text(row.size.attention_parameters),
        row.finished() ? format_count(static_cast<double>(row.size.total_parameters)) : "-", memory_text(results, row)};
    if (decoding) cells.push_back(count_text(row.size.cache_bytes_per_token));
    if (reads_source) cells.push_back(count_text(row.size.source_cache_bytes_per_token));
    cells.push_back(row.peak_memory_bytes > 0 ? bytes_text(row.peak_memory_bytes) : rate_text(row, 0));
    if (on_card) cells.push_back(row.peak_device_bytes > 0 ? bytes_text(row.peak_device_bytes) : "-");
    cells.push_back(speed_text(row, row.training_tokens_per_second, busy.training));
    if (decoding) cells.push_back(speed_text(row, row.decoding_tokens_per_second, busy.decoding));
    if (writes) cells.push_back(speed_text(row, row.outputs_per_second, busy.outputs));
    table.add(cells);
  }
  return table.text(terminal_width(Stream::kOut));
}

// Returns a table of some of a benchmark's columns: those that stand side by side.
std::string task_table(const Results& results, std::span<const TaskColumn> some, const Rows& rows,
                       const VariantRow* best) {
  std::vector<Column> columns = {{.heading = noun(results), .align = Align::kLeft, .wraps = false}};
  for (const TaskColumn& one : some) columns.push_back({.heading = abbreviated(one.heading, kLongestName)});
  TextTable table(columns);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::string> cells = {name_cell(rows[i], best)};
    for (const TaskColumn& one : some) cells.push_back(one.text(i) + (one.is_best(i) ? " *" : "  "));
    table.add(cells);
  }
  return table.text(terminal_width(Stream::kOut));
}

std::string embedding_table(const Results& results, std::span<const EmbeddingColumn> some, const Rows& rows,
                            const VariantRow* best) {
  std::vector<Column> columns = {{.heading = noun(results), .align = Align::kLeft, .wraps = false}};
  for (const EmbeddingColumn& one : some) columns.push_back({.heading = abbreviated(one.heading, kLongestHeading)});
  TextTable table(columns);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<std::string> cells = {name_cell(rows[i], best)};
    for (const EmbeddingColumn& one : some) cells.push_back(one.texts[i]);
    table.add(cells);
  }
  return table.text(terminal_width(Stream::kOut));
}

// Returns a table of benchmarks begin .. end - 1.
std::string side_by_side(const BenchmarksTable& all, size_t begin, size_t end) {
  std::vector<Column> columns = {{.heading = noun(*all.benchmarks().front()), .align = Align::kLeft, .wraps = false},
                                 {.heading = "attention parameters"}};
  for (size_t k = begin; k < end; ++k) {
    columns.push_back({.heading = subject_title(all.benchmarks()[k]->subject)});
    columns.push_back({.heading = "PRR"});
    columns.push_back({.heading = "PEoP"});
  }
  TextTable table(columns);
  for (size_t i = 0; i < all.rows().size(); ++i) {
    const BenchmarksRow& row = all.rows()[i];
    std::vector<std::string> cells = {name_within(row.variant, kLongestName), count_text(row.attention_parameters)};
    for (size_t k = begin; k < end; ++k) {
      std::vector<std::string> texts = benchmark_texts(row.on[k]);
      texts[0] += all.is_best(i, k) ? " *" : "  ";
      cells.insert(cells.end(), texts.begin(), texts.end());
    }
    table.add(std::move(cells));
  }
  return table.text(terminal_width(Stream::kOut));
}

std::string paragraph(const std::string& text) {
  return wrap(visible_line(text), terminal_width(Stream::kOut), 0) + "\n";
}

}  // namespace

std::string comparison_text(const Results& results) {
  const Rows rows = summarise(results);
  const VariantRow* best = best_row(results, rows);
  const Headline words = headline(results, rows);
  std::string text = paragraph(words.finding);
  for (const std::string& caveat : words.caveats) text += paragraph(caveat);
  const auto add_table = [&](const std::string& title, const std::string& table) {
    text += join_text("\n", title.empty() ? "" : bold(visible_line(title), Stream::kOut) + "\n",
                      with_best_in_bold(table, best));
  };
  add_table("Quality", quality_table(results, rows, best));
  add_table(
      join_text("Against ", results.references.quality, ", and for each parameter above ", results.references.peop),
      reference_table(results, rows, best));
  const std::vector<TaskColumn> tasks = task_columns(results.subject, rows);
  const size_t tables = (tasks.size() + kTasksSideBySide - 1) / kTasksSideBySide;
  for (size_t i = 0; i < tables; ++i) {
    const size_t begin = i * tasks.size() / tables;
    const size_t end = (i + 1) * tasks.size() / tables;
    add_table(i == 0 ? task_table_title(results.subject) : "",
              task_table(results, std::span(tasks).subspan(begin, end - begin), rows, best));
  }
  const std::vector<EmbeddingColumn> embeddings = embedding_columns(results, rows);
  if (!embeddings.empty()) add_table("Token embeddings", embedding_table(results, embeddings, rows, best));
  add_table("Cost", cost_table(results, rows, best));
  text += "\n";
  if (best != nullptr) {
    text += paragraph("* best " + quality_name(results.subject) + (tasks.size() > 1 ? ", and best in a column" : ""));
  }
  for (const std::string& note : footnotes(results, rows)) text += paragraph(note);
  for (const std::string& note : failure_notes(results)) text += paragraph(note);
  return text;
}

std::string benchmarks_text(const std::vector<Results>& all) {
  const BenchmarksTable table(all);
  if (!table.is_one()) return "";
  std::string text;
  const size_t count = table.benchmarks().size();
  const size_t tables = (count + kBenchmarksSideBySide - 1) / kBenchmarksSideBySide;
  for (size_t i = 0; i < tables; ++i) {
    text += join_text(i == 0 ? "" : "\n", side_by_side(table, i * count / tables, (i + 1) * count / tables));
  }
  return text + "\n" +
         paragraph("* best of a benchmark. Deviations, intervals and rules are below, benchmark by benchmark.");
}

}  // namespace headshare
