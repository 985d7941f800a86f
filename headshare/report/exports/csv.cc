#include <algorithm>

#include "headshare/base/strings/number.h"
#include "headshare/report/exports/exports.h"
#include "headshare/report/statistics/speeds.h"

namespace headshare {
namespace {

// A line has fields in the order they are added, with their names.
class Line {
 public:
  void add(const std::string& name, const std::string& text) {
    names_.push_back(safe(name));  // a score's name comes from the file
    fields_.push_back(safe(text));
  }
  void add(const std::string& name, int64_t value) { add(name, std::to_string(value)); }
  void add(const std::string& name, std::optional<double> value) { add(name, value ? exact_text(*value) : ""); }
  // Zero stands for what was not measured.
  void add_measured(const char* name, double value) {
    add(name, value > 0 ? std::optional<double>(value) : std::nullopt);
  }

  std::string names() const { return joined(names_); }
  std::string fields() const { return joined(fields_); }

 private:
  // A spreadsheet would compute it, and a formula can read files and call addresses. Numbers may begin with a sign.
  // https://owasp.org/www-community/attacks/CSV_Injection
  static bool is_formula(const std::string& text) {
    return !text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos &&
           !number_in<double>(std::string_view(text).substr(text[0] == '+' ? 1 : 0));
  }

  static std::string safe(const std::string& text) { return quoted(is_formula(text) ? "'" + text : text); }

  static std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string made = "\"";
    for (const char c : text) made += c == '"' ? std::string("\"\"") : std::string(1, c);
    return made + "\"";
  }

  static std::string joined(const std::vector<std::string>& texts) {
    std::string line;
    for (size_t i = 0; i < texts.size(); ++i) line += (i == 0 ? "" : ",") + texts[i];
    return line + "\r\n";
  }

  std::vector<std::string> names_;
  std::vector<std::string> fields_;
};

void add_interval(Line* line, const std::string& low, const std::string& high,
                  const std::optional<Interval>& interval) {
  line->add(low, interval ? std::optional<double>(interval->low) : std::nullopt);
  line->add(high, interval ? std::optional<double>(interval->high) : std::nullopt);
}

void add_summary(Line* line, const std::string& name, const std::string& deviation,
                 const std::optional<Summary>& summary) {
  const bool there = summary && summary->count > 0;
  line->add(name, there ? std::optional<double>(summary->mean) : std::nullopt);
  line->add(deviation, there ? summary->deviation : std::nullopt);
}

void add_subject(Line* line, const Results& results) {
  line->add("subject", results.subject.name);
  line->add("data", results.subject.data);
  line->add("match", results.match);
  line->add("measure", results.subject.measure);
  line->add("part", results.subject.has_test_part ? "test" : "validation");
}

// Returns "bits_per_byte" for "bits-per-byte": the name of a column.
std::string column_name(std::string score) {
  std::replace(score.begin(), score.end(), '-', '_');
  return score;
}

// Returns the scores that any model has, so that all lines have the same columns.
std::vector<std::string> score_names(const std::vector<Results>& all) {
  std::vector<std::string> names;
  for (const Results& results : all) {
    for (const Cell& cell : results.cells) {
      for (const Score& one : cell.scores) {
        if (std::find(names.begin(), names.end(), one.name) == names.end()) names.push_back(one.name);
      }
    }
  }
  return names;
}

void add_quality(Line* line, const VariantRow& row, const std::vector<std::string>& scores) {
  add_summary(line, "validation_loss", "validation_loss_deviation", row.best.validation_loss);
  add_summary(line, "loss", "loss_deviation", row.best.test_loss);
  add_summary(line, "quality", "quality_deviation", row.best.quality);
  add_interval(line, "quality_low", "quality_high", row.best.quality_interval);
  for (const std::string& name : scores) {
    const ScoreRow score = score_of(row.best.scores, name);
    add_summary(line, column_name(name), column_name(name) + "_deviation", score.summary);
    add_interval(line, column_name(name) + "_low", column_name(name) + "_high", score.interval);
  }
  const Difference difference = row.against_reference.value_or(Difference{});
  line->add("minus_reference", row.against_reference ? std::optional<double>(difference.mean) : std::nullopt);
  add_interval(line, "minus_reference_low", "minus_reference_high", difference.interval());
  add_interval(line, "minus_reference_low_over_seeds", "minus_reference_high_over_seeds", difference.over_seeds);
  add_interval(line, "minus_reference_low_over_blocks", "minus_reference_high_over_blocks", difference.over_blocks);
  line->add("minus_reference_p_value", difference.p_value());
  line->add("prr", row.prr.value);
  add_interval(line, "prr_low", "prr_high", row.prr.interval);
  line->add("table_prr", row.table_prr.value);
  line->add("peop", row.peop.value);
  add_interval(line, "peop_low", "peop_high", row.peop.interval);
}

Line variant_line(const Results& results, const VariantRow& row, const BusySpeeds& busy,
                  const std::vector<std::string>& scores) {
  Line line;
  add_subject(&line, results);
  line.add("variant", row.variant);
  line.add("scheme", row.scheme);
  line.add("setting", row.best.setting);
  line.add("trained", row.trained() ? "yes" : "no");
  line.add("seeds", static_cast<int64_t>(row.best.seeds.size()));
  line.add("planned_seeds", row.best.planned);
  line.add("failed_cells", static_cast<int64_t>(row.failed.size()));
  add_quality(&line, row, scores);
  for (const SizeNumber& number : kSizeNumbers) {
    if (number.in_tables) line.add_measured(number.name, static_cast<double>(row.size.*number.member));
  }
  line.add_measured("attention_memory_bytes", row.attention_memory_bytes);
  line.add("attention_memory_saved_percent", row.attention_memory_saved_percent);
  line.add_measured("peak_memory_bytes", row.peak_memory_bytes);
  line.add_measured("peak_device_bytes", row.peak_device_bytes);
  line.add_measured("training_tokens_per_second", row.training_tokens_per_second);
  line.add_measured("decoding_tokens_per_second", row.decoding_tokens_per_second);
  line.add_measured("decoding_context", static_cast<double>(row.decoding_context));
  line.add_measured("outputs_per_second", row.outputs_per_second);
  const auto add_busy = [&](const char* name, double speed, bool is_busy) {
    line.add(name, speed <= 0 ? "" : is_busy ? "yes" : "no");
  };
  add_busy("training_on_busy_machine", row.training_tokens_per_second, busy.training);
  add_busy("decoding_on_busy_machine", row.decoding_tokens_per_second, busy.decoding);
  add_busy("outputs_on_busy_machine", row.outputs_per_second, busy.outputs);
  return line;
}

Line task_line(const Results& results, const VariantRow& row, const TaskRow& task) {
  Line line;
  add_subject(&line, results);
  line.add("variant", row.variant);
  line.add("scheme", row.scheme);
  line.add("task", task.task);
  line.add("seeds", task.score.count);
  add_summary(&line, "score", "score_deviation", task.score);
  const bool there = task.score.count > 0;
  const auto number = [&](const char* name, double value) {
    line.add(name, there ? std::optional<double>(value) : std::nullopt);
  };
  number("score_median", task.score.median);
  number("score_min", task.score.min);
  number("score_max", task.score.max);
  const Coverage coverage = task.coverage.value_or(Coverage{});
  const auto share = [&](const char* name, int64_t part, int64_t whole) {
    line.add(name, whole > 0 ? std::optional(static_cast<double>(part) / static_cast<double>(whole)) : std::nullopt);
  };
  share("unseen_types_share", coverage.unseen_types, coverage.types);
  share("unseen_words_share", coverage.unseen_words, coverage.words);
  share("unseen_rows_share", coverage.unseen_rows, coverage.rows);
  share("cut_rows_share", coverage.cut_rows.value_or(0), coverage.cut_rows ? coverage.rows : 0);
  add_summary(&line, "unseen_rows_score", "unseen_rows_score_deviation", task.unseen_score);
  return line;
}

std::optional<double> score_of(const Cell* cell, const std::string& name) {
  if (cell == nullptr) return std::nullopt;
  for (const Score& one : cell->scores) {
    if (one.name == name) return one.value;
  }
  return std::nullopt;
}

void add_figures(Line* line, const Cell* cell, const std::vector<std::string>& scores) {
  const auto number = [&](const char* name, auto read) {
    line->add(name, cell == nullptr ? std::nullopt : std::optional<double>(read(*cell)));
  };
  number("validation_loss", [](const Cell& c) { return c.validation_loss; });
  number("loss", [](const Cell& c) { return c.test_loss; });
  number("quality", [](const Cell& c) { return c.quality; });
  for (const std::string& name : scores) line->add(column_name(name), score_of(cell, name));
  number("steps", [](const Cell& c) { return static_cast<double>(c.steps); });
  number("best_step", [](const Cell& c) { return static_cast<double>(c.best_step); });
  number("tokens", [](const Cell& c) { return static_cast<double>(c.tokens); });
  number("training_seconds", [](const Cell& c) { return c.training_seconds; });
  number("training_tokens_per_second", [](const Cell& c) { return c.training_tokens_per_second; });
  number("decoding_tokens_per_second", [](const Cell& c) { return c.decoding_tokens_per_second; });
  number("outputs_per_second", [](const Cell& c) { return c.outputs_per_second; });
  const auto waited = [&](const char* name, std::optional<double> WaitShares::*share) {
    line->add(name, cell == nullptr ? std::nullopt : cell->waited.*share);
  };
  waited("training_waited", &WaitShares::training);
  waited("decoding_waited", &WaitShares::decoding);
  waited("outputs_waited", &WaitShares::outputs);
  number("attention_memory_bytes", [](const Cell& c) { return static_cast<double>(c.attention_memory_bytes); });
  number("peak_memory_bytes", [](const Cell& c) { return static_cast<double>(c.peak_memory_bytes); });
  number("peak_device_bytes", [](const Cell& c) { return static_cast<double>(c.peak_device_bytes); });
  line->add("signature", cell == nullptr ? "" : cell->signature);
  line->add("model", cell == nullptr ? "" : cell->model);
}

Line cell_line(const Results& results, const CellKey& key, const std::vector<std::string>& scores) {
  const auto cell =
      std::find_if(results.cells.begin(), results.cells.end(), [&](const Cell& one) { return one.key == key; });
  const auto failed =
      std::find_if(results.failed.begin(), results.failed.end(), [&](const FailedCell& one) { return one.key == key; });
  const bool finished = cell != results.cells.end();
  Line line;
  add_subject(&line, results);
  line.add("variant", key.variant);
  line.add("scheme", variant_of(results, key.variant).scheme);
  line.add("setting", key.setting);
  line.add("seed", key.seed);
  line.add("state", finished ? "finished" : failed != results.failed.end() ? "failed" : "missing");
  line.add("reason", failed != results.failed.end() ? failed->reason : "");
  add_figures(&line, finished ? &*cell : nullptr, scores);
  return line;
}

void append_line(std::string* csv, const Line& line) {
  if (csv->empty()) *csv = line.names();
  *csv += line.fields();
}

}  // namespace

std::string variants_csv(const std::vector<Results>& all) {
  const std::vector<std::string> scores = score_names(all);
  std::string csv;
  for (const Results& results : all) {
    const std::vector<VariantRow> rows = summarise(results);
    const BusySpeeds busy = busy_speeds(results, rows);
    for (const VariantRow& row : rows) append_line(&csv, variant_line(results, row, busy, scores));
  }
  return csv;
}

std::string tasks_csv(const std::vector<Results>& all) {
  std::string csv;
  for (const Results& results : all) {
    for (const VariantRow& row : summarise(results)) {
      for (const TaskRow& task : row.tasks) append_line(&csv, task_line(results, row, task));
    }
  }
  return csv;
}

std::string cells_csv(const std::vector<Results>& all) {
  const std::vector<std::string> scores = score_names(all);
  std::string csv;
  for (const Results& results : all) {
    for (const CellKey& key : results.planned) append_line(&csv, cell_line(results, key, scores));
  }
  return csv;
}

}  // namespace headshare
