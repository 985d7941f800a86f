// headshare compare: the same model, once per attention scheme and seed; the paper's table on the
// user's own text.
#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/base/notice.h"
#include "headshare/cli/args.h"
#include "headshare/cli/exit_codes.h"
#include "headshare/cli/interrupt.h"
#include "headshare/cli/machine.h"
#include "headshare/cli/model_input.h"
#include "headshare/cli/progress.h"
#include "headshare/cli/runtime_options.h"
#include "headshare/cli/table.h"
#include "headshare/cli/terminal.h"
#include "headshare/cli/verbs.h"
#include "headshare/compare/summary.h"

namespace headshare {
namespace {

struct CompareCommand {
  std::string out;
  bool resume = false;
  bool overwrite = false;
  bool dry_run = false;
  bool json = false;
  ComparisonOptions comparison;
  RuntimeOptions runtime;

  Arguments arguments() {
    Arguments made("compare",
                   "Trains the same model once per attention scheme and seed, and prints the paper's table.");
    made.group("Comparison",
               {field("out", &out, "directory for results.json and the models", {.aliases = {"output-dir"}}),
                field("resume", &resume, "go on with the comparison in --out; finished models are not trained again"),
                field("overwrite", &overwrite, "delete the comparison in --out first"),
                field("dry-run", &dry_run, "check the options, print what would be trained, train nothing"),
                field("json", &json, "print results.json instead of the table")});
    made.group("What is trained", fields(comparison));
    made.group("Computing", fields(runtime));
    made.note(
        "PRR is the share of mha's quality a scheme keeps, by perplexity: 100 (2 - M / M_mha). PEoP is the relative "
        "gain over sha per relative growth in attention parameters. Figures are those of the test part for the "
        "checkpoint that was best on validation.");
    return made;
  }
};

// The preset comes first and everything else on top of it, wherever --preset stands.
std::string wanted_preset(const Words& words) {
  CompareCommand probe;
  Arguments arguments = probe.arguments();
  if (!arguments.parse(words)) return "";
  return to_json(fields(probe.comparison))["preset"];
}

class GridProgress : public ComparisonObserver {
 public:
  GridProgress() : line_("comparing") {}

  void on_cell(const CellPlan& plan) override {
    plan_ = plan;
    if (plan.finished) notice(join_text(title(), ": finished before, taken over"));
  }

  void on_step(const StepReport& report) override {
    const double done = static_cast<double>(plan_.number - 1) +
                        static_cast<double>(report.step) / static_cast<double>(report.total_steps);
    last_ = done;
    line_.update(done, static_cast<double>(plan_.count),
                 join_text(title(), "  loss ", format_fixed(report.loss, 4), "  ",
                           format_count(report.tokens_per_second), " tokens/s"));
  }

  void on_evaluation_progress(int64_t, int64_t) override {
    line_.update(last_, static_cast<double>(plan_.count), title() + "  evaluating");
  }

  void finish() { line_.hide(); }

 private:
  std::string title() const {
    return join_text(plan_.number, "/", plan_.count, " ", scheme_name(plan_.scheme), " seed ", plan_.seed);
  }

  ProgressLine line_;
  CellPlan plan_{};
  double last_ = 0;
};

std::string with_deviation(const Summary& summary, int digits) {
  std::string text = format_fixed(summary.mean, digits);
  if (summary.deviation) text += " ±" + format_fixed(*summary.deviation, digits);
  return text;
}

std::string retention_text(const Retention& retention, int digits) {
  return retention.value ? format_fixed(*retention.value, digits) : "-";
}

std::string table_text(const std::vector<SchemeSummary>& rows, const ComparisonOptions& options) {
  TextTable table({{.heading = "scheme", .align = Align::kLeft},
                   {.heading = "attention parameters"},
                   {.heading = "test loss"},
                   {.heading = "perplexity"},
                   {.heading = "PRR"},
                   {.heading = "PEoP"},
                   {.heading = "cache B/token"},
                   {.heading = "training tokens/s"}});
  for (const SchemeSummary& row : rows) {
    const bool trained = row.scheme != SchemeKind::kElLossless;
    table.add({scheme_name(row.scheme), format_count(static_cast<double>(row.size.attention_parameters)),
               with_deviation(row.test_loss, 4), with_deviation(row.perplexity, 2), retention_text(row.prr, 1),
               retention_text(row.peop, 2), format_count(static_cast<double>(row.size.cache_bytes_per_token)),
               trained ? format_count(row.tokens_per_second) : "as mha"});
  }
  std::string text = table.text(terminal_width(Stream::kOut));
  text += join_text("\n", options.seeds, options.seeds == 1 ? " seed" : " seeds (mean ±deviation)",
                    "; figures of the test part for the checkpoint best on validation.\n");
  if (options.seeds == 1) {
    text += "One seed tells no noise from difference: use --seeds 3 or more before drawing conclusions.\n";
  }
  return text;
}

void explain_left_out(const ComparisonOptions& options) {
  for (const SchemeKind scheme : chosen_schemes(options.schemes)) {
    const std::string reason = why_not(options, scheme);
    if (!reason.empty()) notice(join_text(scheme_name(scheme), " is left out: ", reason));
  }
}

// What the options mean together, before any text is read.
void check_options(const ComparisonOptions& options) {
  as_usage([&] {
    learning_rate_at(options.train.schedule, 0, options.train.steps);
    const std::vector<SchemeKind> schemes = chosen_schemes(options.schemes);
    const std::string first = why_not(options, schemes.front());
    const bool any =
        std::any_of(schemes.begin(), schemes.end(), [&](SchemeKind one) { return why_not(options, one).empty(); });
    HS_CHECK(any, "no scheme can be trained with these options; ", scheme_name(schemes.front()), ": ", first);
  });
}

// What each scheme would take; the vocabulary is the one the tokenizer is asked for.
std::string plan_text(const ComparisonOptions& options) {
  TextTable table({{.heading = "scheme", .align = Align::kLeft},
                   {.heading = "attention parameters"},
                   {.heading = "total parameters"},
                   {.heading = "cache B/token"}});
  DecoderOptions model = options.language.model;
  model.vocabulary = likely_vocabulary(options.language);
  for (const SchemeKind scheme : chosen_schemes(options.schemes)) {
    const std::string reason = why_not(options, scheme);
    if (!reason.empty()) {
      table.add_spanning(scheme_name(scheme), "left out: " + reason);
      continue;
    }
    model.attention.scheme = scheme;
    const ModelSize size = measure(resolve(model));
    table.add({scheme_name(scheme), format_count(static_cast<double>(size.attention_parameters)),
               format_count(static_cast<double>(size.total_parameters)),
               format_count(static_cast<double>(size.cache_bytes_per_token))});
  }
  return table.text(terminal_width(Stream::kOut)) + join_text("\n", options.train.steps, " steps each, ", options.seeds,
                                                              options.seeds == 1 ? " seed\n" : " seeds\n");
}

int compare(CompareCommand& command) {
  RunDirectory directory(command.out);
  const fs::path home = directory.path();
  const bool begun = fs::exists(home / "cells") || fs::exists(home / "results.json");
  HS_CHECK(command.resume || command.overwrite || !begun, home.string(),
           " holds a comparison already; --resume goes on with it, --overwrite deletes it, or choose another --out");
  const c10::Device device = start_runtime(command.runtime);
  explain_left_out(command.comparison);

  ProgressLine reading("text");
  const LanguageData data = open_language_data(command.comparison.language, show_reading(reading));
  reading.hide();
  check_parts(data);
  if (!command.resume) {
    // Nothing of an earlier comparison is touched until its text could be read.
    fs::remove_all(home / "cells");
    fs::remove(home / "results.json");
    CompareCommand lasting = command;
    lasting.overwrite = lasting.json = false;  // facts of this call, which --resume must not repeat
    lasting.arguments().write_resolved(home / "resolved.yaml");
  }

  GridProgress progress;
  const std::vector<Cell> cells =
      run_comparison(command.comparison, data, home.string(), device, progress, stop_requested);
  progress.finish();
  const std::vector<SchemeSummary> rows = summarise(command.comparison, cells, data.tokenizer->vocabulary_size());
  const nlohmann::json results = results_json(command.comparison, cells, rows, describe_machine());
  write_file(home / "results.json", results.dump(2) + "\n");
  print(command.json ? results.dump(2) + "\n" : table_text(rows, command.comparison));
  return kOk;
}

// Finished models are taken over, so that what they were trained with must not change; schemes and
// seeds may, because they only add models.
void check_unchanged(const nlohmann::json& began, const nlohmann::json& now) {
  for (const auto& [name, value] : began.items()) {
    if (name == "schemes" || name == "seeds" || value == now.at(name)) continue;
    throw UsageError(join_text("the comparison was begun with ", name, " ", value.dump(), " and cannot go on with ",
                               now.at(name).dump(), "; leave --", name, " away, or use another --out"));
  }
}

// A resumed comparison keeps the options it began with.
CompareCommand parse_resumed(const Words& words, const std::string& out) {
  const fs::path resolved = fs::path(out) / "resolved.yaml";
  if (!fs::exists(resolved)) throw UsageError("nothing to resume in " + out + ": it has no resolved.yaml");
  Words all = {"--config", resolved.string()};
  CompareCommand began;
  Arguments first = began.arguments();
  first.parse(all);
  all.insert(all.end(), words.begin(), words.end());
  CompareCommand command;
  Arguments arguments = command.arguments();
  arguments.parse(all);
  check_unchanged(to_json(fields(began.comparison)), to_json(fields(command.comparison)));
  return command;
}

}  // namespace

int run_compare(const Words& words) {
  const std::string preset = wanted_preset(words);
  if (preset.empty()) return kOk;  // --help
  CompareCommand command;
  command.comparison = preset_options(parse_preset(preset));
  Arguments arguments = command.arguments();
  arguments.parse(words);
  // The preset's vocabulary is for tokenizers that are trained to a size; others refuse one.
  const TokenizerKind tokenizer = command.comparison.language.tokenizer.kind;
  const bool fixed_size = tokenizer == TokenizerKind::kBytes || tokenizer == TokenizerKind::kCharacters;
  if (fixed_size && !arguments.given("vocabulary-size")) command.comparison.language.tokenizer.vocabulary_size.reset();
  if (command.dry_run) {
    check_options(command.comparison);
    print(plan_text(command.comparison));
    return kOk;
  }
  if (command.resume && command.overwrite) throw UsageError("--resume and --overwrite exclude each other");
  if (command.out.empty()) throw UsageError("--out is missing: where should results.json and the models be kept?");
  if (command.resume) command = parse_resumed(words, command.out);
  check_options(command.comparison);
  catch_interrupts();
  try {
    return compare(command);
  } catch (const Interrupted& stopped) {
    if (!fs::exists(fs::path(command.out) / "resolved.yaml")) throw;  // nothing was begun
    throw Interrupted(join_text(stopped.what(), "; go on with: headshare compare --resume --out ", command.out));
  }
}

}  // namespace headshare
