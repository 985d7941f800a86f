#include <algorithm>
#include <cctype>
#include <map>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/base/strings/visible.h"
#include "headshare/report/exports/exports.h"
#include "headshare/report/statistics/benchmarks_table.h"
#include "headshare/report/statistics/comparability.h"
#include "headshare/report/statistics/findings.h"
#include "headshare/report/statistics/headline.h"
#include "headshare/report/statistics/notes.h"
#include "headshare/report/statistics/task_columns.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

constexpr const char* kNeeds = "% needs \\usepackage{booktabs,graphicx}\n";

// Writes every character that LaTeX reads as a command as text.
std::string escaped(const std::string& text) {
  static const std::map<char, std::string> kCommands = {{'\\', "\\textbackslash{}"},
                                                        {'~', "\\textasciitilde{}"},
                                                        {'^', "\\textasciicircum{}"},
                                                        {'<', "\\textless{}"},
                                                        {'>', "\\textgreater{}"},
                                                        {'|', "\\textbar{}"},
                                                        {'"', "''"},
                                                        {'&', "\\&"},
                                                        {'%', "\\%"},
                                                        {'$', "\\$"},
                                                        {'#', "\\#"},
                                                        {'_', "\\_"},
                                                        {'{', "\\{"},
                                                        {'}', "\\}"}};
  std::string made;
  for (const char c : printable(text)) {
    const auto found = kCommands.find(c);
    if (found != kCommands.end()) {
      made += found->second;
    } else if ((c & 0xC0) != 0x80) {
      made += static_cast<unsigned char>(c) < 0x80 ? c : '?';  // a letter the fonts lack stops LaTeX
    }
  }
  return made;
}

void replace_all(std::string* text, const std::string& from, const std::string& to) {
  for (size_t at = text->find(from); at != std::string::npos; at = text->find(from, at + to.size())) {
    text->replace(at, from.size(), to);
  }
}

// Writes numbers in mathematics, so that a minus is one; a dash where there is none.
std::string number(std::string text) {
  if (text == "-") return "--";
  replace_all(&text, "±", "\\pm");
  replace_all(&text, "%", "\\%");
  replace_all(&text, ", ", ",\\,");
  return "$" + text + "$";
}

// Writes thousands without the blank that mathematics puts behind a comma.
std::string count(int64_t value) {
  std::string text = count_text(value);
  replace_all(&text, ",", "{,}");
  return number(text);
}

std::string row_text(const Results& results, const VariantRow& row, bool best) {
  std::string quality = number(quality_text(results.subject, row.best.quality));
  if (best) quality = "\\boldmath" + quality;
  if (shows_quality_interval(results) && row.best.quality_interval) {
    quality += " " + number(quality_interval_text(results.subject, row.best));
  }
  std::vector<std::string> cells = {escaped(row.variant)};
  if (any_setting(results)) cells.push_back(escaped(row.best.setting));
  const std::string seeds = number(std::to_string(row.best.seeds.size()));
  cells.push_back(lacks_seeds(row.best) ? join_text(seeds, " of ", number(std::to_string(row.best.planned))) : seeds);
  cells.push_back(count(row.size.attention_parameters));
  cells.push_back(quality);
  std::string difference =
      row.trained() ? number(difference_text(results.subject, row)) : escaped("as " + row.weights_of);
  if (row.trained() && row.against_reference && row.against_reference->interval()) {
    difference += " " + number(difference_interval_text(results.subject, row.against_reference->interval()));
  }
  cells.push_back(difference);
  cells.push_back(number(retention_text(row.prr, 1)));
  cells.push_back(number(retention_text(row.peop, 2)));
  cells.push_back(
      row.attention_memory_saved_percent ? number(format_fixed(*row.attention_memory_saved_percent, 1) + "%") : "--");
  cells.push_back(count(row.size.cache_bytes_per_token));
  std::string line;
  for (const std::string& cell : cells) line += (line.empty() ? "" : " & ") + cell;
  return line + " \\\\\n";
}

// This sets a table in its own size, but no wider than the text: \small alone is not enough for ten columns of numbers.
constexpr const char* kShrunk = "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n";

// Returns a float around a tabular, which `text` ends.
std::string with_caption(const std::string& comments, const std::string& caption, const std::string& label,
                         const std::string& text) {
  return join_text(comments, "\\begin{table}\n\\centering\n\\caption{", caption, "}\n\\label{tab:", label, "}\n",
                   kShrunk, text, "\\bottomrule\n\\end{tabular}}\n\\end{table}\n");
}

// Returns what \label takes: small letters, digits and hyphens.
std::string label_text(const std::string& name) {
  std::string made;
  for (const char c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 && static_cast<unsigned char>(c) < 0x80;
    made += plain ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : '-';
  }
  constexpr size_t kLongest = 40;
  return made.empty() ? "comparison" : made.substr(0, kLongest);
}

// Says what was found, and what the numbers are.
std::string caption_of(const Results& results, const std::vector<VariantRow>& rows) {
  std::string text = join_text(subject_title(results.subject), ": ", comparison_finding(results, rows), ".");
  if (most_seeds(rows) > 1) text += " Means with standard deviations over seeds.";
  const bool intervals = std::any_of(rows.begin(), rows.end(), [](const VariantRow& row) {
    return row.best.quality_interval || (row.against_reference && row.against_reference->interval());
  });
  if (intervals) text += " Brackets: 95% intervals.";
  const bool few = std::any_of(rows.begin(), rows.end(), [](const VariantRow& row) { return lacks_seeds(row.best); });
  if (few) text += " A row with fewer seeds than planned says how many it has.";
  return escaped(text);
}

// Returns the second table of a benchmark, with a column for each task.
std::string task_table(const Results& results, const std::vector<VariantRow>& rows, const std::string& label) {
  const std::vector<TaskColumn> columns = task_columns(results.subject, rows);
  if (columns.empty()) return "";
  std::string text =
      "\\begin{tabular}{l" + std::string(columns.size(), 'r') + "}\n\\toprule\n" + capitalised(noun(results));
  for (const TaskColumn& one : columns) text += " & " + escaped(one.heading);
  text += " \\\\\n\\midrule\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    text += escaped(rows[i].variant);
    for (const TaskColumn& one : columns) {
      const std::string score = number(one.text(i));
      text += " & " + (one.is_best(i) ? "\\boldmath" + score : score);
    }
    text += " \\\\\n";
  }
  const std::string caption = join_text(subject_title(results.subject), ": ", task_table_title(results.subject),
                                        "; the best in bold, with standard deviations over seeds.");
  return with_caption("\n", escaped(caption), label + "-tasks", text);
}

// Returns lines of a comment; a line feed inside would end it.
std::string comment(const std::string& text) { return "% " + printable(text) + "\n"; }

std::string latex_table(const Results& results, const std::string& label) {
  const std::vector<VariantRow> rows = summarise(results);
  const VariantRow* best = best_row(results, rows);
  const bool settings = any_setting(results);
  std::string notes = comment("headshare: " + results.subject.name + ", " + results.subject.data) +
                      comment(headline(results, rows).text());
  for (const std::string& note : footnotes(results, rows)) notes += comment(note);
  for (const std::string& note : failure_notes(results)) notes += comment(note);
  std::string text = "\\begin{tabular}{l" + std::string(settings ? "l" : "") + "rrrrrrrr}\n";
  text += "\\toprule\n" + capitalised(noun(results)) + std::string(settings ? " & Setting" : "") +
          " & Seeds & Attention & " + escaped(quality_name(results.subject)) + " & " +
          escaped(compared_name(results.subject)) + " & PRR & PEoP & Memory & Cache \\\\\n" +
          std::string(settings ? " &" : "") + " & & parameters & & minus " + escaped(results.references.quality) +
          " & & & saved & B/token \\\\\n\\midrule\n";
  for (const VariantRow& row : rows) text += row_text(results, row, &row == best);
  return with_caption(notes + kNeeds, caption_of(results, rows), label, text) + task_table(results, rows, label);
}

// Returns the benchmarks side by side; "" where these are no table.
std::string latex_benchmarks_table(const std::vector<Results>& all) {
  const BenchmarksTable table(all);
  if (!table.is_one()) return "";
  std::string text = "\\begin{tabular}{lr";
  std::string names, columns;
  for (const Results* one : table.benchmarks()) {
    text += "rrr";
    names += " & \\multicolumn{3}{c}{" + escaped(subject_title(one->subject)) + "}";
    columns += " & " + escaped(capitalised(score_heading(one->subject.measure))) + " & PRR & PEoP";
  }
  text += "}\n\\toprule\n & Attention" + names + " \\\\\nScheme & parameters" + columns + " \\\\\n\\midrule\n";
  for (size_t i = 0; i < table.rows().size(); ++i) {
    const BenchmarksRow& row = table.rows()[i];
    text += escaped(row.variant) + " & " + count(row.attention_parameters);
    for (size_t k = 0; k < row.on.size(); ++k) {
      const std::vector<std::string> texts = benchmark_texts(row.on[k]);
      text += std::string(" & ") + (table.is_best(i, k) ? "\\boldmath" : "");
      text += number(texts[0]) + " & " + number(texts[1]) + " & " + number(texts[2]);
    }
    text += " \\\\\n";
  }
  return with_caption(join_text(kLatexMark, "benchmarks\n", kNeeds),
                      "The same encoders on every benchmark; the best in bold.", "benchmarks", text) +
         "\n";
}

}  // namespace

std::string latex_tables(const std::vector<Results>& all) {
  std::string tables;
  std::map<std::string, int> seen;  // labels
  for (const Results& results : all) {
    const std::string name = label_text(results.subject.name);
    const int number = ++seen[name];
    tables +=
        join_text(tables.empty() ? "" : "\n", latex_table(results, number == 1 ? name : join_text(name, "-", number)));
  }
  return latex_benchmarks_table(all) + tables;
}

}  // namespace headshare
