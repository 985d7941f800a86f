#include "headshare/report/statistics/notes.h"

#include <algorithm>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/report/statistics/comparability.h"
#include "headshare/report/statistics/machines.h"
#include "headshare/report/statistics/option_names.h"
#include "headshare/report/statistics/speeds.h"
#include "headshare/report/statistics/verdicts.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

// Collects sentences with the variants they hold for: one line for many rows that say the same.
class Grouped {
 public:
  void add(const std::string& variant, const std::string& text) {
    if (text.empty()) return;
    const auto found =
        std::find_if(groups_.begin(), groups_.end(), [&](const auto& group) { return group.first == text; });
    if (found == groups_.end()) {
      groups_.push_back({text, {variant}});
    } else {
      found->second.push_back(variant);
    }
  }

  // Returns "3 seeds" when all agree, else "3 seeds (mqa, sha); 2 seeds (gqa)".
  std::string text() const {
    std::string all;
    for (const auto& [text, variants] : groups_) {
      all += (all.empty() ? "" : "; ") + text;
      if (groups_.size() > 1) all += " (" + list_text(variants) + ")";
    }
    return all;
  }

  bool empty() const { return groups_.empty(); }

  // Returns the sentences always with the variants: "sha: the reference itself; el: ...".
  std::string by_variant() const {
    std::string all;
    for (const auto& [text, variants] : groups_) {
      all += (all.empty() ? "" : "; ") + list_text(variants) + ": " + text;
    }
    return all;
  }

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> groups_;
};

std::string figures_note(const Results& results, const std::vector<VariantRow>& rows) {
  size_t most = 0;
  for (const VariantRow& row : rows) most = std::max(most, row.best.seeds.size());
  const std::string spread = most > 1 ? " Shown are means ± standard deviations over seeds." : "";
  if (results.subject.has_test_part) {
    return "All numbers come from the test part, for the checkpoint with the best validation loss." + spread;
  }
  return "There is no test part: all numbers come from the validation part, which also chose each checkpoint. They "
         "flatter every " +
         noun(results) + " a little (selection bias)." + spread;
}

// Returns "wide: heads 8, scheme mqa. rms: norm rms.": the options of variants that are more than a scheme; "" without
// such.
std::string variants_note(const Results& results) {
  std::string text;
  for (const std::string& name : variant_names(results)) {
    const Variant variant = variant_of(results, name);
    if (variant == scheme_variant(name)) continue;
    std::string options;
    for (const auto& [option, value] : variant.options.items()) {
      options += join_text(options.empty() ? "" : ", ", option_name(option), " ", option_value(value));
    }
    text +=
        join_text(text.empty() ? "" : " ", name, ": ", options.empty() ? "the options of all models" : options, ".");
  }
  return text;
}

std::string benchmark_note(const Results& results) {
  std::string text = "Scores are in per cent: of a task the mean of its metrics";
  if (results.subject.tasks.size() > 1)
    text += ", of a " + noun(results) + " the mean over tasks, and its loss likewise";
  return text + ". A metric that is 0/0 counts 0.";
}

// Says what is reached without learning.
std::string guessing_note(const Subject& subject) {
  std::string each;
  for (size_t i = 0; i < subject.task_chances.size(); ++i) {
    const std::optional<double>& chance = subject.task_chances[i];
    if (chance) each += join_text(each.empty() ? "" : ", ", subject.tasks[i], " ", quality_text(subject, *chance));
  }
  if (!each.empty()) {
    return join_text("The most frequent answer of the training part, given to every question, scores ", each, ".");
  }
  return subject.chance ? "Guessing reaches " + quality_text(subject, *subject.chance) + "." : "";
}

std::string difference_note(const Results& results, const std::vector<VariantRow>& rows) {
  Grouped tests;
  for (const VariantRow& row : rows) {
    if (row.against_reference && row.trained()) tests.add(row.variant, row.against_reference->test);
  }
  if (tests.empty()) return "";
  const bool lower = less_is_better(results.subject);
  const std::string& reference = results.references.quality;
  const std::string what = noun(results);
  return join_text("Difference to ", reference, ": ", compared_name(results.subject), " of the ", what,
                   " minus that of ", reference, ", paired; ", lower ? "above" : "below", " 0 the ", what,
                   " is worse. Test: ", tests.text(), ".");
}

// The rule calls the reference MHA or SHA; `reference` is the variant that stands for it.
void add_retention_notes(const std::vector<VariantRow>& rows, const char* name, Retention VariantRow::*which,
                         const std::string& symbol, const std::string& reference, std::vector<std::string>* notes) {
  Grouped rules, undefined;
  std::string rule;
  for (const VariantRow& row : rows) {
    const Retention& retention = row.*which;
    rule = retention.rule;
    if (retention.value) {
      rules.add(row.variant, retention.interval_rule);
    } else if (row.finished()) {
      undefined.add(row.variant, retention.reason_undefined);
    }
  }
  std::string note = rule + (symbol == reference ? "." : join_text("; the reference is ", reference, "."));
  if (!rules.empty()) note += " " + rules.text() + ".";
  if (!undefined.empty()) note += join_text(" No ", name, " for ", undefined.by_variant(), ".");
  notes->push_back(note);
}

// Returns "mha 400 steps in 12 s, sha 455 steps in 12 s": what the same time came to, medians over seeds.
std::string steps_and_seconds(const Results& results, const std::vector<VariantRow>& rows) {
  std::string text;
  for (const VariantRow& row : rows) {
    if (!row.finished() || !row.trained()) continue;
    std::vector<double> seconds;
    int64_t steps = 0;
    for (const Cell* cell : cells_of(results, row.variant, row.best.setting)) {
      steps = cell->steps;
      seconds.push_back(cell->training_seconds);
    }
    text += join_text(text.empty() ? "" : ", ", row.variant, " ", plural(static_cast<size_t>(steps), "step"), " in ",
                      format_duration(median(seconds)));
  }
  return text;
}

void add_cost_notes(const Results& results, const std::vector<VariantRow>& rows, std::vector<std::string>* notes) {
  if (results.match == "time") {
    notes->push_back(join_text("Every ", noun(results), " was given the same training time, not the same steps: ") +
                     steps_and_seconds(results, rows) + ".");
  }
  if (results.match == "parameters") {
    Grouped widths;
    for (const VariantRow& row : rows) {
      if (row.finished()) widths.add(row.variant, std::to_string(row.size.feed_forward_width));
    }
    notes->push_back("Feed-forward widths were chosen so that total parameters agree: " + widths.text() + ".");
  }
  std::string memory;
  if (std::any_of(rows.begin(), rows.end(), [](const VariantRow& r) { return r.attention_memory_bytes > 0; })) {
    memory = "Attention memory: what one attention sub-layer takes in a training step (saved against " +
             results.references.quality + "). ";
  }
  if (std::any_of(rows.begin(), rows.end(), [](const VariantRow& r) { return r.peak_memory_bytes > 0; })) {
    memory += "Peak memory: the whole process that trained the model. ";
  }
  if (any_device_memory(results)) memory += "Card memory: the most that its tensors took on the GPU. ";
  Grouped contexts;
  for (const VariantRow& row : rows) {
    if (row.decoding_tokens_per_second > 0) contexts.add(row.variant, std::to_string(row.decoding_context));
  }
  if (!contexts.empty()) memory += join_text("Decoding: one sequence, tokens in the cache: ", contexts.text(), ". ");
  if (any_output_speed(results)) {
    memory += "Translating: the sentences that are scored, in batches, by the same beam search; ";
    memory += "a model that writes longer sentences takes longer. ";
  }
  if (!memory.empty()) notes->push_back(memory + "Memory: the median over seeds. " + speed_note(results, rows));
  if (const std::string machines = machines_note(results); !machines.empty()) notes->push_back(machines);
  for (const VariantRow& row : rows) {
    if (row.trained()) continue;
    notes->push_back(join_text(row.variant, ": the weights of ", row.weights_of,
                               ", rewritten for decoding; not trained, so its quality is ", row.weights_of, "'s."));
  }
}

std::string share_text(int64_t part, int64_t whole) {
  return percent_text(whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole));
}

// Says which share of a task's rows each tokenizer's were too long; "" where none was.
std::string cuts_text(const std::vector<VariantRow>& rows, size_t task) {
  Grouped shares;
  bool any = false;
  for (const VariantRow& row : rows) {
    const std::optional<Coverage>& coverage = row.tasks.at(task).coverage;
    if (!coverage || !coverage->cut_rows) continue;
    shares.add(row.variant, share_text(*coverage->cut_rows, coverage->rows));
    any = any || *coverage->cut_rows > 0;
  }
  return any ? join_text(" Rows that were longer than --finetune-max-length and were cut: ", shares.text(), ".") : "";
}

// Says what the columns of the table of embeddings are, and how much of the data they could not learn.
void add_embedding_notes(const Results& results, const std::vector<VariantRow>& rows, std::vector<std::string>* notes) {
  notes->push_back(
      join_text("Embedding parameters: of the token embedding, rows of special tokens included. PRR "
                "against the table: ",
                quality_name(results.subject), " kept of the same ", noun(results), " with a table of WordPieces."));
  if (!all_losses_compare(results)) {
    notes->push_back(
        "Losses of WordPieces and of words are of different tokens, so they are not compared. Those of hashed words "
        "compare with --random-tokens words alone: otherwise each embedding has random codes of its own.");
  }
  if (rows.empty()) return;
  for (size_t i = 0; i < rows.front().tasks.size(); ++i) {
    const TaskRow& task = rows.front().tasks[i];
    if (!task.coverage) continue;
    const Coverage& c = *task.coverage;
    notes->push_back(
        join_text(task.task, ": ", share_text(c.unseen_types, c.types), " of the distinct words and ",
                  share_text(c.unseen_words, c.words), " of all words that are scored occur in no training example; ",
                  share_text(c.unseen_rows, c.rows), " of the rows hold such a word.", cuts_text(rows, i)));
  }
}

// Tells whether a setting ("cross-scheme=mqa heads=8") gives some site another scheme than `scheme`.
bool names_other_scheme(const std::string& setting, const std::string& scheme) {
  const std::string option = "-scheme=";
  for (size_t at = setting.find(option); at != std::string::npos; at = setting.find(option, at + 1)) {
    const size_t begin = at + option.size();
    if (setting.substr(begin, setting.find(' ', begin) - begin) != scheme) return true;
  }
  return false;
}

// Names the scheme of the reference where a sweep over the schemes of single sites chose another one for it; "" where
// it did not.
std::string reference_note(const Results& results, const std::vector<VariantRow>& rows) {
  const VariantRow* reference = reference_row(results, rows);
  if (reference == nullptr || !names_other_scheme(reference->best.setting, reference->scheme)) return "";
  return join_text("The reference ", reference->variant, " has ", reference->best.setting,
                   ", which the sweep chose: PRR, PEoP and differences are against that. To compare places with the "
                   "plain scheme, give them as --variants.");
}

}  // namespace

std::vector<std::string> footnotes(const Results& results, const std::vector<VariantRow>& rows) {
  std::vector<std::string> notes = {figures_note(results, rows)};
  if (const std::string variants = variants_note(results); !variants.empty()) notes.push_back(variants);
  if (any_setting(results)) {
    notes.push_back("The row of a " + noun(results) +
                    " shows the setting of the sweep with the lowest mean validation loss.");
  }
  if (const std::string reference = reference_note(results, rows); !reference.empty()) notes.push_back(reference);
  if (results.subject.unknown_share > 0) {
    notes.push_back(join_text(percent_text(results.subject.unknown_share), " of the ",
                              results.subject.has_test_part ? "test" : "validation",
                              " tokens are unknown to the tokenizer. They are easy to predict: perplexities of another "
                              "tokenizer or vocabulary cannot be compared with these."));
  }
  Grouped intervals;
  for (const VariantRow& row : rows) {
    if (row.finished()) intervals.add(row.variant, row.best.quality_interval_rule);
  }
  if (shows_quality_interval(results) && !intervals.empty()) {
    std::string likewise;
    for (const std::string& name : score_names(rows)) {
      if (shows_score_interval(rows, name)) likewise += (likewise.empty() ? "" : ", ") + score_heading(name);
    }
    if (!likewise.empty()) likewise = ". Intervals of " + likewise + " likewise";
    notes.push_back(
        join_text("Interval of the mean ", quality_name(results.subject), ": ", intervals.text(), likewise, "."));
  }
  if (!results.subject.tasks.empty()) notes.push_back(benchmark_note(results));
  const std::string guessing = guessing_note(results.subject);
  if (!guessing.empty()) notes.push_back(guessing);
  const std::string difference = difference_note(results, rows);
  if (!difference.empty()) notes.push_back(difference);
  if (!rows.empty()) {
    add_retention_notes(rows, "PRR", &VariantRow::prr, "mha", results.references.quality, &notes);
    add_retention_notes(rows, "PEoP", &VariantRow::peop, "sha", results.references.peop, &notes);
  }
  if (compares_embeddings(results)) add_embedding_notes(results, rows, &notes);
  add_cost_notes(results, rows, &notes);
  return notes;
}

std::vector<std::string> failure_notes(const Results& results) {
  std::vector<std::string> notes;
  for (const FailedCell& cell : results.failed) {
    notes.push_back("Failed: " + name_of(cell.key) + ": " + cell.reason);
  }
  return notes;
}

}  // namespace headshare
