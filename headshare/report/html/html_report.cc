#include "headshare/report/html/html_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/report/html/html_examples.h"
#include "headshare/report/html/html_figures.h"
#include "headshare/report/html/html_origin.h"
#include "headshare/report/html/html_page.h"
#include "headshare/report/statistics/benchmarks_table.h"
#include "headshare/report/statistics/decision.h"
#include "headshare/report/statistics/embedding_columns.h"
#include "headshare/report/statistics/findings.h"
#include "headshare/report/statistics/headline.h"
#include "headshare/report/statistics/notes.h"
#include "headshare/report/statistics/option_names.h"
#include "headshare/report/statistics/speeds.h"
#include "headshare/report/statistics/task_columns.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

std::string headline_html(const Headline& words) {
  std::string made = "<p class=\"finding\">" + escape_numbers(words.finding) + "</p>\n";
  if (!words.caveats.empty()) {
    made += "<div class=\"care\"><strong>Read with care</strong><ul>" + list_items(words.caveats) + "</ul></div>\n";
  }
  return made;
}

std::string facts_html(const Results& results, const std::vector<VariantRow>& rows) {
  std::vector<int64_t> seeds;
  for (const CellKey& key : results.planned) {
    if (std::find(seeds.begin(), seeds.end(), key.seed) == seeds.end()) seeds.push_back(key.seed);
  }
  const auto fact = [](const char* name, const std::string& value, bool wide = false) {
    return fmt::format("<div{}><dt>{}</dt><dd>{}</dd></div>", wide ? " class=\"wide\"" : "", name, escape_html(value));
  };
  const std::string models = join_text(results.cells.size(), " of ", results.planned.size(), " finished",
                                       results.failed.empty() ? "" : join_text(", ", results.failed.size(), " failed"));
  std::string made = "<dl class=\"facts\">" + fact("Data", results.subject.data, /*wide=*/true);
  made += fact((capitalised(noun(results)) + "s").c_str(), std::to_string(rows.size())) +
          fact("Seeds", std::to_string(seeds.size()));
  made += fact("Models", models) + fact("Held equal", results.match);
  if (!results.subject.tasks.empty()) made += fact("Tasks", std::to_string(results.subject.tasks.size()));
  made += fact("Measure", quality_name(results.subject));
  return made + "</dl>\n";
}

std::optional<double> value_of(const Summary& summary) {
  return summary.count > 0 ? std::optional<double>(summary.mean) : std::nullopt;
}

// Puts what goes with a number on a second line.
HtmlCell with_second_line(HtmlCell cell, const std::string& text) {
  if (!text.empty()) cell.html += "<span class=\"sub\">" + number_cell(text).html + "</span>";
  return cell;
}

HtmlCell scheme_cell(const ReportView& view, const VariantRow& row, bool best) {
  HtmlCell cell{view.key(row.variant)};
  if (best) cell.html += "<span class=\"badge\">best</span>";
  for (const std::string& line :
       {setting_text(row.best.setting), lacks_seeds(row.best) ? seeds_text(row.best) + " seeds" : std::string(),
        row.trained() ? std::string() : join_text("from ", row.weights_of, ", not trained")}) {
    if (!line.empty()) cell.html += "<span class=\"sub\">" + escape_html(line) + "</span>";
  }
  return cell;
}

// Returns the class of a row of a table: the best one stands out, one with fewer seeds than planned is grey.
std::string row_css(const VariantRow& row, const VariantRow* best) {
  return join_text(&row == best ? "best" : "", &row == best && lacks_seeds(row.best) ? " " : "",
                   lacks_seeds(row.best) ? "few" : "");
}

HtmlCell retention_cell(const Retention& retention, int digits) {
  if (!retention.value) {
    return {fmt::format("<span class=\"none\">–<span class=\"vh\"> {}</span></span>",
                        escape_html(retention.reason_undefined))};
  }
  Retention alone = retention;
  alone.interval.reset();
  return with_second_line(number_cell(retention_text(alone, digits), retention.value),
                          retention.interval ? interval_text(*retention.interval, digits) : "");
}

HtmlCell difference_cell(const Subject& subject, const VariantRow& row) {
  if (!row.against_reference) {
    return {
        fmt::format("<span class=\"none\">–<span class=\"vh\"> {}</span></span>", escape_html(row.why_no_difference))};
  }
  std::string second = row.trained() ? difference_interval_text(subject, row.against_reference->interval()) : "";
  const std::optional<double> p_value = row.against_reference->p_value();
  if (row.trained() && p_value) second += ", p " + p_text(*p_value);
  return with_second_line(number_cell(difference_text(subject, row), row.against_reference->mean), second);
}

std::string quality_table(const ReportView& view, const VariantRow* best) {
  const Results& results = view.results;
  const std::vector<std::string> scores = score_names(view.rows);
  const std::string what = capitalised(noun(results));
  std::vector<HtmlTable::Heading> headings = {{.text = what, .number = false}};
  const bool benchmark = !results.subject.tasks.empty();  // the paper's table
  if (benchmark) headings.push_back({.text = "Attention parameters"});
  headings.push_back({.text = "Seeds"});
  headings.push_back({.text = "Validation loss"});
  const bool interval = shows_quality_interval(results);
  headings.push_back({.text = capitalised(quality_name(results.subject)),
                      .number = true,
                      .unit = interval ? "± deviation; 95% interval; loss" : "and loss; ± deviation"});
  for (const std::string& name : scores) headings.push_back({.text = capitalised(score_heading(name))});
  headings.push_back({.text = capitalised(difference_heading(results)), .number = true, .unit = "95% interval"});
  headings.push_back({.text = "PRR", .number = true, .unit = "% of " + results.references.quality});
  headings.push_back({.text = "PEoP", .number = true, .unit = "above " + results.references.peop});
  HtmlTable table(headings);
  for (const VariantRow& row : view.rows) {
    const Summary& quality = row.best.quality;
    std::vector<HtmlCell> cells = {scheme_cell(view, row, &row == best)};
    if (benchmark) {
      cells.push_back(
          number_cell(count_text(row.size.attention_parameters), static_cast<double>(row.size.attention_parameters)));
    }
    cells.push_back(number_cell(seeds_text(row.best), static_cast<double>(row.best.seeds.size())));
    cells.push_back(number_cell(summary_text(row.best.validation_loss, 4), value_of(row.best.validation_loss)));
    HtmlCell reached = number_cell(quality_text(results.subject, quality), value_of(quality));
    if (&row == best) reached.html = "<strong>" + reached.html + "</strong>";
    if (interval) {
      reached = with_second_line(std::move(reached), quality_interval_text(results.subject, row.best));
    }
    cells.push_back(with_second_line(std::move(reached), quality.count > 0 ? summary_text(row.best.test_loss, 4) : ""));
    for (const std::string& name : scores) {
      HtmlCell score = number_cell(score_text(row.best, name), value_of(score_of(row.best.scores, name).summary));
      cells.push_back(with_second_line(std::move(score), score_interval_text(row.best, name)));
    }
    cells.push_back(difference_cell(results.subject, row));
    cells.push_back(retention_cell(row.prr, 1));
    cells.push_back(retention_cell(row.peop, 2));
    table.add(std::move(cells), row_css(row, best));
  }
  return table.html(
      join_text("Quality, with differences to ", results.references.quality, " and ", results.references.peop),
      /*sortable=*/true);
}

// Returns the table of a benchmark; "" else.
std::string task_table(const ReportView& view, const VariantRow* best) {
  const std::vector<TaskColumn> columns = task_columns(view.results.subject, view.rows);
  if (columns.empty()) return "";
  std::vector<HtmlTable::Heading> headings = {{.text = capitalised(noun(view.results)), .number = false}};
  for (const TaskColumn& one : columns) headings.push_back({.text = one.heading});
  HtmlTable table(headings);
  for (size_t i = 0; i < view.rows.size(); ++i) {
    std::vector<HtmlCell> cells = {scheme_cell(view, view.rows[i], false)};
    for (const TaskColumn& one : columns) {
      const Summary& score = one.scores[i];
      HtmlCell cell = number_cell(score.count > 0 ? format_fixed(score.mean, one.digits) : "-", value_of(score));
      if (one.is_best(i)) cell.html = "<strong>" + cell.html + "</strong>";
      cells.push_back(
          with_second_line(std::move(cell), score.deviation ? "±" + format_fixed(*score.deviation, one.digits) : ""));
    }
    table.add(std::move(cells), row_css(view.rows[i], best));
  }
  return table.html(task_table_title(view.results.subject) + "; the best in bold, ± deviation over seeds",
                    /*sortable=*/true);
}

// Returns the table of embeddings where they are compared; "" else.
std::string embedding_table(const ReportView& view, const VariantRow* best) {
  const std::vector<EmbeddingColumn> columns = embedding_columns(view.results, view.rows);
  if (columns.empty()) return "";
  std::vector<HtmlTable::Heading> headings = {{.text = capitalised(noun(view.results)), .number = false}};
  for (const EmbeddingColumn& one : columns) headings.push_back({.text = capitalised(one.heading)});
  HtmlTable table(headings);
  for (size_t i = 0; i < view.rows.size(); ++i) {
    std::vector<HtmlCell> cells = {scheme_cell(view, view.rows[i], false)};
    for (const EmbeddingColumn& one : columns) {
      cells.push_back(number_cell(one.texts[i], one.values[i]));
      if (one.busy) cells.back().html = "<span class=\"busy\">" + cells.back().html + "</span>";
    }
    table.add(std::move(cells), row_css(view.rows[i], best));
  }
  return table.html("Token embeddings", /*sortable=*/true);
}

// Returns the speed, grey, with the warning below it, where it was measured on a busy machine.
HtmlCell speed_cell(const VariantRow& row, double per_second, bool busy) {
  HtmlCell cell = number_cell(rate_text(row, per_second), per_second > 0 ? std::optional(per_second) : std::nullopt);
  if (!busy || per_second <= 0) return cell;
  cell.html = "<span class=\"busy\">" + cell.html + "</span>";
  return with_second_line(std::move(cell), kBusyMachine);
}

std::string cost_table(const ReportView& view, const VariantRow* best) {
  const BusySpeeds busy = busy_speeds(view.results, view.rows);
  const bool decoding = any_decoding(view.results);
  const bool reads_source = any_source_cache(view.results);
  std::vector<HtmlTable::Heading> headings = {
      {.text = capitalised(noun(view.results)), .number = false},
      {.text = "Attention parameters", .number = true, .unit = "effective"},
      {.text = "Total parameters"},
      {.text = "Attention memory", .number = true, .unit = "against " + view.results.references.quality}};
  if (decoding) headings.push_back({.text = "Cache", .number = true, .unit = "bytes per token"});
  if (reads_source) headings.push_back({.text = "Source cache", .number = true, .unit = "bytes per token"});
  headings.push_back({.text = "Peak memory"});
  const bool on_card = any_device_memory(view.results);
  if (on_card) headings.push_back({.text = "Card memory"});
  headings.push_back({.text = "Training", .number = true, .unit = training_unit(view.results.subject) + "/s"});
  if (decoding) headings.push_back({.text = "Decoding", .number = true, .unit = "tokens/s"});
  const bool writes = any_output_speed(view.results);
  if (writes) headings.push_back({.text = "Translating", .number = true, .unit = "sentences/s"});
  HtmlTable table(headings);
  const auto positive = [](double value) { return value > 0 ? std::optional<double>(value) : std::nullopt; };
  for (const VariantRow& row : view.rows) {
    const auto count = [&](int64_t value) {
      return number_cell(count_text(value), positive(static_cast<double>(value)));
    };
    const bool differs = row.size.attention_parameters_effective != row.size.attention_parameters;
    const std::string peak = row.peak_memory_bytes > 0 ? bytes_text(row.peak_memory_bytes) : rate_text(row, 0);
    const auto rate = [&](double value, bool busy) { return speed_cell(row, value, busy); };
    std::vector<HtmlCell> cells = {
        scheme_cell(view, row, false),
        with_second_line(count(row.size.attention_parameters),
                         differs ? count_text(row.size.attention_parameters_effective) : ""),
        count(row.size.total_parameters),
        with_second_line(number_cell(row.attention_memory_bytes > 0 ? bytes_text(row.attention_memory_bytes) : "-",
                                     positive(row.attention_memory_bytes)),
                         memory_saved_text(view.results, row))};
    if (decoding) cells.push_back(count(row.size.cache_bytes_per_token));
    if (reads_source) cells.push_back(count(row.size.source_cache_bytes_per_token));
    cells.push_back(number_cell(peak, positive(row.peak_memory_bytes)));
    if (on_card) {
      const std::string card = row.peak_device_bytes > 0 ? bytes_text(row.peak_device_bytes) : "-";
      cells.push_back(number_cell(card, positive(row.peak_device_bytes)));
    }
    cells.push_back(rate(row.training_tokens_per_second, busy.training));
    if (decoding) cells.push_back(rate(row.decoding_tokens_per_second, busy.decoding));
    if (writes) cells.push_back(rate(row.outputs_per_second, busy.outputs));
    table.add(std::move(cells), row_css(row, best));
  }
  return table.html("Cost", /*sortable=*/true);
}

std::string failed_html(const ReportView& view) {
  if (view.results.failed.empty()) return "";
  HtmlTable table({{.text = capitalised(noun(view.results)), .number = false},
                   {.text = "Setting", .number = false},
                   {.text = "Seed"},
                   {.text = "Reason", .number = false}});
  for (const FailedCell& cell : view.results.failed) {
    table.add({{view.key(cell.key.variant)},
               text_cell(setting_text(cell.key.setting)),
               number_cell(std::to_string(cell.key.seed)),
               {"<span class=\"reason\">" + escape_html(cell.reason) + "</span>"}});
  }
  return "<h3 id=\"" + view.id + "-failed\">Models that failed</h3>\n" + "<div class=\"bare\">" +
         table.html("Models that failed", /*sortable=*/false) + "</div>\n";
}

// Shows what decides, before everything else: what each quality costs.
std::string key_figures_html(const ReportView& view) {
  const std::string figures = figures_html(key_figures(view));
  if (figures.empty()) return "";
  const std::string explained =
      means_are_decided(view.results, view.rows)
          ? join_text("The stepped line is the Pareto frontier: no ", noun(view.results),
                      " has both a smaller cost and a better mean than one on it (ringed and bold). The frontier "
                      "compares means only; neighbours on it need not differ significantly.")
          : "No Pareto frontier is drawn: some of these means may stand in this order by chance.";
  return fmt::format("<h3 id=\"{}-key\">Quality for its cost</h3>\n<p class=\"explains\">{}</p>\n{}", view.id,
                     explained, figures);
}

std::string more_figures_html(const ReportView& view) {
  const std::string figures = figures_html(more_figures(view));
  return figures.empty() ? "" : fmt::format("<h3 id=\"{}-figures\">More figures</h3>\n{}", view.id, figures);
}

std::string section_heading(const Results& results, const std::vector<VariantRow>& rows, const std::string& id,
                            const char* heading) {
  return fmt::format("<p class=\"eyebrow\">{} compared{}</p>\n<{} id=\"{}-h\">{}</{}>\n",
                     noun(results) == "scheme" ? "Attention schemes" : "Variants",
                     is_complete(results) ? "" : " · <span class=\"partial\">partial</span>", heading, id,
                     escape_numbers(subject_title(results.subject) + ": " + comparison_finding(results, rows)),
                     heading);
}

std::string section_html(const Results& results, const std::string& id, const char* heading) {
  const std::vector<VariantRow> rows = summarise(results);
  const ReportView view{results, rows, id};
  const VariantRow* best = best_row(results, rows);
  std::string made = fmt::format("<section id=\"{0}\" aria-labelledby=\"{0}-h\">\n", id);
  made += section_heading(results, rows, id, heading);
  if (!results.subject.sentence.empty()) {
    made += "<p class=\"asks\">The task: " + escape_html(results.subject.sentence) + "</p>\n";
  }
  made += headline_html(headline(results, rows)) + key_figures_html(view) + facts_html(results, rows);
  made += fmt::format("<h3 id=\"{}-table\">All numbers</h3>\n", id) + quality_table(view, best) +
          task_table(view, best) + embedding_table(view, best) + cost_table(view, best);
  made += "<ul class=\"notes\">" + list_items(footnotes(results, rows)) + "</ul>\n";
  made += more_figures_html(view) + examples_html(view) + failed_html(view);
  return made + fmt::format("<h3 id=\"{}-origin\">How it was made</h3>\n", id) + origin_html(results) + "</section>\n";
}

// Returns the paper's table: all benchmarks side by side.
std::string benchmarks_html(const BenchmarksTable& made_of) {
  if (!made_of.is_one()) return "";
  std::vector<HtmlTable::Heading> headings = {{.text = "Scheme", .number = false}, {.text = "Attention parameters"}};
  for (const Results* one : made_of.benchmarks()) {
    headings.push_back({.text = subject_title(one->subject), .number = true, .unit = quality_name(one->subject)});
    headings.push_back({.text = "PRR", .number = true, .unit = "% of " + one->references.quality});
    headings.push_back({.text = "PEoP", .number = true, .unit = "above " + one->references.peop});
  }
  HtmlTable table(headings);
  for (size_t i = 0; i < made_of.rows().size(); ++i) {
    const BenchmarksRow& row = made_of.rows()[i];
    std::vector<HtmlCell> cells = {text_cell(row.variant), number_cell(count_text(row.attention_parameters),
                                                                       static_cast<double>(row.attention_parameters))};
    for (size_t k = 0; k < row.on.size(); ++k) {
      const VariantRow* there = row.on[k];
      if (there == nullptr) {
        for (int column = 0; column < 3; ++column) cells.push_back(number_cell("-"));
        continue;
      }
      const Summary& quality = there->best.quality;
      HtmlCell score = number_cell(format_fixed(quality.mean, 1), quality.mean);
      if (made_of.is_best(i, k)) score.html = "<strong>" + score.html + "</strong>";
      cells.push_back(
          with_second_line(std::move(score), quality.deviation ? "±" + format_fixed(*quality.deviation, 1) : ""));
      cells.push_back(retention_cell(there->prr, 1));
      cells.push_back(retention_cell(there->peop, 2));
    }
    table.add(std::move(cells));
  }
  return "<section id=\"benchmarks\" aria-labelledby=\"benchmarks-h\">\n<h2 id=\"benchmarks-h\">Side by side</h2>\n" +
         table.html("Every benchmark; the best in bold, ± deviation over seeds", /*sortable=*/true) + "</section>\n";
}

std::string contents_html(const std::vector<Results>& all) {
  std::string made = "<h1>Attention schemes compared</h1>\n<nav class=\"sections\" aria-label=\"Comparisons\"><ul>";
  for (size_t i = 0; i < all.size(); ++i) {
    made += fmt::format("<li><a href=\"#c{}\">{}</a> <span class=\"none\">{}</span></li>", i + 1,
                        escape_html(subject_title(all[i].subject)), escape_html(all[i].subject.data));
  }
  return made + "</ul></nav>\n";
}

}  // namespace

std::string html_report(const std::vector<Results>& all) {
  const bool several = all.size() > 1;
  std::string title = "headshare: ";
  for (size_t i = 0; i < all.size(); ++i) title += (i == 0 ? "" : ", ") + subject_title(all[i].subject);
  std::string body;
  if (several) body += contents_html(all) + benchmarks_html(BenchmarksTable(all));
  for (size_t i = 0; i < all.size(); ++i) {
    body += section_html(all[i], "c" + std::to_string(i + 1), several ? "h2" : "h1");
  }
  return html_page(title, body, "Made by headshare from results.json; <code>headshare report</code> makes it again.");
}

}  // namespace headshare
