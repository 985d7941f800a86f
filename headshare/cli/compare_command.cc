// headshare compare: the same model, once per attention scheme and seed; the paper's table on the
// user's own text, or on a diagnostic task.
#include <ATen/Parallel.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/base/notice.h"
#include "headshare/cli/args.h"
#include "headshare/cli/cell_process.h"
#include "headshare/cli/comparison_table.h"
#include "headshare/cli/exit_codes.h"
#include "headshare/cli/grid_progress.h"
#include "headshare/cli/interrupt.h"
#include "headshare/cli/machine.h"
#include "headshare/cli/model_input.h"
#include "headshare/cli/runtime_options.h"
#include "headshare/cli/table.h"
#include "headshare/cli/terminal.h"
#include "headshare/cli/train_task.h"
#include "headshare/cli/verbs.h"
#include "headshare/compare/cell_run.h"
#include "headshare/compare/measure.h"
#include "headshare/data/text_source.h"

namespace headshare {
namespace {

constexpr double kSecondsPerDay = 24 * 60 * 60;

struct CompareCommand {
  std::string out;
  bool resume = false;
  bool overwrite = false;
  bool dry_run = false;
  bool beyond_a_day = false;
  bool json = false;
  bool latex = false;
  ComparisonOptions comparison;
  RuntimeOptions runtime;

  Arguments arguments() {
    Arguments made("compare",
                   "Trains the same model once per attention scheme and seed, and prints the paper's table.");
    made.group(
        "Comparison",
        {field("out", &out, "directory for results.json, report.html and the models", {.aliases = {"output-dir"}}),
         field("resume", &resume, "go on with the comparison in --out; finished models are not trained again"),
         field("overwrite", &overwrite, "delete the comparison in --out first"),
         field("dry-run", &dry_run, "check the options, print what would be trained, train nothing"),
         field("beyond-a-day", &beyond_a_day, "start even what is estimated to take longer than a day"),
         field("json", &json, "print results.json instead of the table"),
         field("latex", &latex, "also write the table in LaTeX, table.tex")});
    made.group("What is trained", fields(comparison));
    made.group("Computing", fields(runtime));
    made.note(
        "Every model is trained in a process of its own, one after another, on the same batches in the same order, "
        "with the same initial values for what two schemes share. Figures are those of the test part for the "
        "checkpoint that was best on validation.");
    made.note(
        "PRR is the share of mha's quality a scheme keeps: 100 M / M_mha, for perplexities 100 (2 - M / M_mha). PEoP "
        "is the relative gain over sha per relative growth in attention parameters.");
    return made;
  }
};

// Task and preset come first and everything else on top of them, wherever they stand. False: --help.
bool begin_with_preset(const Words& words, CompareCommand* command) {
  CompareCommand probe;
  Arguments arguments = probe.arguments();
  if (!arguments.parse(words)) return false;
  command->comparison = preset_options(probe.comparison.task, probe.comparison.preset);
  return true;
}

Words quoted(const Words& words) {
  Words safe;
  for (const std::string& word : words) {
    const bool plain =
        word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:+") ==
        std::string::npos;
    std::string text = "'";
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    safe.push_back(plain && !word.empty() ? word : text + "'");
  }
  return safe;
}

std::string command_line(const Words& words) {
  std::string line = "headshare compare";
  for (const std::string& word : quoted(words)) line += " " + word;
  return line;
}

void explain_left_out(const ComparisonOptions& options) {
  for (const SchemeKind scheme : chosen_schemes(options)) {
    const std::string reason = why_not(options, scheme);
    if (!reason.empty()) notice(join_text(scheme_name(scheme), " is left out: ", reason));
  }
}

// What a comparison on text trains, as `train` has it. Diagnostic tasks train decoders too.
TaskOptions text_task(const ComparisonOptions& options) {
  const bool masked = options.task == ComparisonTask::kMaskedLanguageModel;
  return {.task = masked ? TrainTask::kMaskedLanguageModel : TrainTask::kLanguageModel,
          .language = options.language,
          .masked = options.masked};
}

// As `train` does, and likewise for the tasks that only a comparison has.
void refuse_foreign_options(const ComparisonOptions& options) {
  refuse_foreign_options(text_task(options));
  ComparisonOptions given = options;
  ComparisonOptions untouched = preset_options(options.task, options.preset);
  const nlohmann::json values = to_json(fields(given));
  const nlohmann::json defaults = to_json(fields(untouched));
  const auto changed = [&](const Field& one) { return values.at(one.name) != defaults.at(one.name); };
  for (const Field& one : fields(given.diagnostic)) {
    const std::vector<DiagnosticKind> tasks = tasks_with(one.name);
    const bool mine = is_diagnostic(options.task) &&
                      std::find(tasks.begin(), tasks.end(), diagnostic_kind(options.task)) != tasks.end();
    if (mine || !changed(one)) continue;
    std::string names;
    for (const DiagnosticKind kind : tasks) names += (names.empty() ? "" : " or ") + diagnostic_name(kind);
    throw UsageError(join_text("--", one.name, " belongs to --task ", names, "; this comparison's task is ",
                               values.at("task").get<std::string>()));
  }
  if (!is_diagnostic(options.task)) return;
  Fields model = fields(given.language.model);
  for (const Field& one : fields(given.language)) {
    const bool shared = one.name == "batch-size" || find_field(model, one.name) != nullptr;
    if (shared || !changed(one)) continue;
    throw UsageError(join_text("--", one.name, " is about text, and --task ", values.at("task").get<std::string>(),
                               " makes its own sequences; leave it away"));
  }
  if (values.at("context") != defaults.at("context")) {
    throw UsageError("--context is a text model's; the sequences of a diagnostic task set it (--sequence-length)");
  }
}

// What the options mean together, before any text is read.
void check_options(const ComparisonOptions& options) {
  as_usage([&] {
    refuse_foreign_options(options);
    check_scheme_steps(options);
    for (const SweepSetting& setting : sweep_settings(options)) {
      const ComparisonOptions set = with_setting(options, setting);
      learning_rate_at(set.train.schedule, 0, set.train.steps);
      if (is_diagnostic(set.task)) open_experiment(set);  // refuses impossible sizes
      const std::vector<SchemeKind> schemes = chosen_schemes(set);
      const bool any =
          std::any_of(schemes.begin(), schemes.end(), [&](SchemeKind one) { return why_not(set, one).empty(); });
      HS_CHECK(any, "no scheme can be trained with these options; ", scheme_name(schemes.front()), ": ",
               why_not(set, schemes.front()));
    }
  });
}

// What each scheme would take; the vocabulary of text is the one the tokenizer is asked for.
ModelOptions likely_model(const ComparisonOptions& options, SchemeKind scheme) {
  ComparisonOptions cell = options;
  cell.language.model.attention.scheme = scheme;
  if (is_diagnostic(cell.task)) return open_experiment(cell)->model(cell);
  return likely_model(text_task(cell));
}

std::string plan_text(const ComparisonOptions& options) {
  TextTable table({{.heading = "scheme", .align = Align::kLeft},
                   {.heading = "attention parameters"},
                   {.heading = "total parameters"},
                   {.heading = "cache B/token"}});
  for (const SchemeKind scheme : chosen_schemes(options)) {
    const std::string reason = why_not(options, scheme);
    if (!reason.empty()) {
      table.add_spanning(scheme_name(scheme), "left out: " + reason);
      continue;
    }
    const ModelSize size = size_of(likely_model(options, scheme));
    table.add({scheme_name(scheme), format_count(static_cast<double>(size.attention_parameters)),
               format_count(static_cast<double>(size.total_parameters)),
               format_count(static_cast<double>(size.cache_bytes_per_token))});
  }
  std::string text =
      table.text(terminal_width(Stream::kOut)) +
      join_text("\n", options.train.steps, " steps each, ", options.seeds, options.seeds == 1 ? " seed" : " seeds");
  const size_t settings = sweep_settings(options).size();
  if (settings > 1) text += join_text(", ", settings, " settings");
  return text + "\n";
}

// Standard input can be read once, and every model's process reads the text: it is kept with the run,
// which so can be repeated.
void keep_standard_input(const fs::path& home, ComparisonOptions* options) {
  std::vector<std::string>& inputs = options->language.data.text;
  const auto dash = std::find(inputs.begin(), inputs.end(), "-");
  if (dash == inputs.end()) return;
  const fs::path kept = home / "input.txt";
  save_standard_input(kept);
  *dash = kept.string();
}

// Says how long it will take; refuses what takes more than a day or does not fit onto the disk.
void check_effort(const CompareCommand& command, const std::vector<CellPlan>& plans, const Experiment& experiment,
                  const fs::path& home, c10::Device device) {
  const auto measured = [&](const ComparisonOptions& cell) {
    check_interrupted();
    return seconds_per_step(experiment, cell, device);
  };
  const double seconds = estimated_seconds(plans, home, measured);
  HS_CHECK(command.beyond_a_day || seconds <= kSecondsPerDay, "training these ", plans.size(),
           " models would take about ", format_duration(seconds), " (hours:minutes:seconds; ", at::get_num_threads(),
           " threads), longer than a day; take fewer --steps, --seeds or --schemes, a smaller ",
           "--preset, or start it all the same with --beyond-a-day");
  check_disk(plans, experiment, home);
  if (seconds > 60) notice(join_text("training ", plans.size(), " models takes about ", format_duration(seconds)));
}

// Another text or tokenizer than at the beginning would put two experiments into one table.
void check_same_data(const fs::path& home, const Subject& subject) {
  if (!fs::exists(home / "results.json")) return;
  const Results before = read_results(home / "results.json");
  HS_CHECK(before.subject.data == subject.data, "the data of ", home.string(), " changed since it was begun: it was (",
           before.subject.data, ") and is (", subject.data, "); use another --out, or --overwrite");
}

// Forgets an earlier comparison and writes down what this one is.
void begin_anew(const CompareCommand& command, const fs::path& home) {
  for (const char* name : {"cells", "results.json", "results.csv", "cells.csv", "report.html", "table.tex"}) {
    fs::remove_all(home / name);
  }
  CompareCommand lasting = command;
  lasting.overwrite = lasting.resume = lasting.json = lasting.latex = false;  // facts of this call alone
  lasting.arguments().write_resolved(home / "resolved.yaml");
}

Words child_words(const RuntimeOptions& runtime, const fs::path& home, const CellPlan& plan) {
  Words words = {"train-cell", home.string(), plan.directory()};
  RuntimeOptions copy = runtime;
  for (const Field& one : fields(copy)) {
    const std::string value = field_text(one.value(), one.name);
    if (value != "auto") words.insert(words.end(), {"--" + one.name, value});
  }
  return words;
}

// Runs a cell in a process of its own.
CellRunner process_runner(const RuntimeOptions& runtime, const fs::path& home, const ComparisonOptions& shared,
                          GridProgress& progress) {
  return [&runtime, home, &shared, &progress](const CellPlan& plan) {
    CellPlan complete = plan;
    complete.options.language.tokenizer_path = shared.language.tokenizer_path;
    make_directories(cell_home(home, plan));
    write_file(cell_home(home, plan) / "plan.json", to_json(complete).dump(2) + "\n");
    const CellProcess process{.words = child_words(runtime, home, plan),
                              .observer = &progress,
                              .on_note = [&progress](const std::string& note) { progress.on_note(note); },
                              .stop_requested = stop_requested};
    return process.run();
  };
}

Results begin_results(const CompareCommand& command, const Words& words, const Experiment& experiment) {
  ComparisonOptions options = command.comparison;
  return {.subject = experiment.subject(),
          .match = match_name(options.match),
          .command = command_line(words),
          .environment = describe_machine(),
          .options = to_json(fields(options))};
}

int compare(CompareCommand& command, const Words& words) {
  RunDirectory directory(command.out);
  const fs::path home = directory.path();
  const bool begun = fs::exists(home / "cells") || fs::exists(home / "results.json");
  HS_CHECK(command.resume || command.overwrite || !begun, home.string(),
           " holds a comparison already; --resume goes on with it, --overwrite deletes it, or choose another --out");
  const c10::Device device = start_runtime(command.runtime);
  warn_if_slow(command.comparison.train.precision, device);
  command.comparison.train.precision = resolve_precision(command.comparison.train.precision, device);
  explain_left_out(command.comparison);
  keep_standard_input(home, &command.comparison);

  ProgressLine reading("text");
  const std::unique_ptr<Experiment> experiment = open_experiment(command.comparison, show_reading(reading));
  reading.hide();
  if (command.comparison.match == Match::kTime && command.comparison.scheme_steps.empty()) {
    match_time(
        trainable_schemes(command.comparison),
        [&](const ComparisonOptions& cell) { return seconds_per_step(*experiment, cell, device); },
        &command.comparison);
  }
  const std::vector<CellPlan> plans = plan_cells(command.comparison, *experiment);
  check_effort(command, plans, *experiment, home, device);
  if (command.resume) {
    check_same_data(home, experiment->subject());
  } else {
    begin_anew(command, home);  // only now: nothing of an earlier comparison is touched by a mistake
  }

  ComparisonOptions shared = command.comparison;
  experiment->share(home, &shared);
  Results results = begin_results(command, words, *experiment);
  GridProgress progress(home, {.latex = command.latex});
  run_comparison(plans, home, process_runner(command.runtime, home, shared, progress), progress, &results);
  progress.finish();
  print(command.json ? to_text(to_json(results)) : comparison_text(results));
  return results.failed.empty() ? kOk : kFailure;
}

// Finished models are taken over, so that what they were trained with must not change; schemes and
// seeds may, because they only add models.
void check_unchanged(const nlohmann::json& began, const nlohmann::json& now) {
  for (const auto& [name, value] : began.items()) {
    if (name == "schemes" || name == "seeds" || name == "peop" || value == now.at(name)) continue;
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
  CompareCommand command;
  if (!begin_with_preset(words, &command)) return kOk;  // --help
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
    return compare(command, words);
  } catch (const Interrupted& stopped) {
    if (!fs::exists(fs::path(command.out) / "resolved.yaml")) throw;  // nothing was begun
    throw Interrupted(join_text(stopped.what(), "; go on with: headshare compare --resume --out ", command.out));
  }
}

}  // namespace headshare
