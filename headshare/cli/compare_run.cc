#include "headshare/cli/compare_run.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "headshare/base/directory_lock.h"
#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/base/notice.h"
#include "headshare/cli/cell_process.h"
#include "headshare/cli/interrupt.h"
#include "headshare/cli/machine.h"
#include "headshare/cli/model_input.h"
#include "headshare/cli/resume.h"
#include "headshare/cli/terminal.h"
#include "headshare/compare/cell_run.h"
#include "headshare/compare/measure.h"
#include "headshare/ops/tensor_memory.h"

namespace headshare {
namespace {

constexpr double kSecondsPerDay = 24 * 60 * 60;

void explain_left_out(const ComparisonOptions& options) {
  for (const Variant& variant : chosen_variants(options)) {
    const std::string reason = why_not(options, variant);
    if (!reason.empty()) notice(join_text(variant.name, " is left out: ", reason));
  }
}

double measured_seconds(const std::vector<CellPlan>& plans, const Experiment& experiment, const fs::path& home,
                        c10::Device device) {
  return estimated_seconds(plans, home, [&](const ComparisonOptions& cell) {
    check_interrupted();
    return seconds_per_step(experiment, cell, device);
  });
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
CellRunner process_runner(const RuntimeOptions& runtime, const fs::path& home, GridProgress& progress) {
  return [&runtime, home, &progress](const CellPlan& plan) {
    make_directories(cell_home(home, plan.key));
    write_file(cell_home(home, plan.key) / "plan.json", to_json(plan).dump(2) + "\n");
    const CellProcess process{.words = child_words(runtime, home, plan),
                              .observer = &progress,
                              .on_note = [&progress](const std::string& note) { progress.on_note(note); },
                              .stop_requested = stop_requested};
    return process.run();
  };
}

// What `compare` writes. Encoders are a comparison of their own below it, with a mark of their own.
OutputMark comparison_mark(const fs::path& home) {
  return OutputMark(home, {.verb = "compare",
                           .what = "a comparison",
                           .names = {kResolvedFile, "cells", "results.json", "results.csv", "cells.csv", "tasks.csv",
                                     "report.html", "table.tex", "tokenizer.json"},
                           .unmistakable = {kKeptInputs}});
}

// Files that are found again from any directory.
void make_paths_whole(ComparisonOptions* options) {
  make_paths_whole(&options->language.data);
  TaskFiles& files = options->fine_tuning.job.files;
  for (std::string* path : {&options->fine_tuning.encoders, &files.data, &files.train, &files.validation, &files.test,
                            &options->language.tokenizer_path}) {
    *path = whole_path(*path);
  }
}

}  // namespace

Arguments CompareCommand::arguments() {
  Arguments made("compare", "Trains the same model once per attention scheme and seed, and prints the paper's table.");
  made.group("Comparison",
             {field("out", &out, "directory for results.json, report.html and the models", {.aliases = {"output-dir"}}),
              field("resume", &resume, "go on with the comparison in --out; finished models are not trained again"),
              field("overwrite", &overwrite, "delete the comparison in --out first"),
              field("dry-run", &dry_run, "check the options, print what would be trained, train nothing"),
              field("beyond-a-day", &beyond_a_day, "start even what is estimated to take longer than a day"),
              field("json", &json, "print results.json instead of the table"),
              field("latex", &latex, "also write the table in LaTeX, table.tex")});
  Fields tuning = fields(comparison.fine_tuning);
  Fields trained = fields(comparison);
  std::erase_if(trained, [&](const Field& one) { return find_field(tuning, one.name) != nullptr; });
  made.group("What is trained", std::move(trained));
  made.group("Fine-tuning", std::move(tuning));
  made.group("Computing", fields(runtime));
  made.note(
      "Every model is trained in a process of its own, one after another, on the same batches in the same order, "
      "with the same initial values for what two schemes share. Figures are those of the test part for the "
      "checkpoint that was best on validation; without a test part with labels, as in most of GLUE, SuperGLUE and "
      "SQuAD, of the validation part, which the report says.");
  made.note(
      "--variants compares any options: --schemes mha --variants wide:scheme=mqa,heads=8,rms:norm=rms trains mha, mqa "
      "with 8 heads, and mha with RMS norms.");
  made.note(
      "With --task glue, superglue, squad, classify, pair or regress one encoder a scheme is pre-trained, or taken "
      "from --encoders, and fine-tuned on every task with each of the --seeds. The options of `headshare finetune` "
      "begin with finetune- here; those without it are of pre-training.");
  made.note(
      "PRR is the share of mha's quality a scheme keeps: 100 M / M_mha, for perplexities 100 (2 - M / M_mha). PEoP "
      "is the relative gain over sha per relative growth in attention parameters.");
  return made;
}

CompareCommand resumed_command(const Words& words, const std::string& out) {
  CompareCommand began;
  Arguments first = began.arguments();
  first.parse(resumed_words({}, out));
  CompareCommand command;
  Arguments arguments = command.arguments();
  arguments.parse(resumed_words(words, out));
  for (CompareCommand* one : {&began, &command}) make_paths_whole(&one->comparison);
  const nlohmann::json before = to_json(fields(began.comparison));
  const nlohmann::json now = to_json(fields(command.comparison));
  // Finished models are taken over, so that what they were trained with must not change. Schemes, variants and seeds
  // only add models, and references only compare them in another way.
  refuse_changed(before, now, {"schemes", "variants", "seeds", "peop", "reference", "peop-reference"},
                 "the comparison");
  command.adds = before != now;
  // Speeds and the last bits of losses are those of a number of threads, and the report names one for all.
  const auto& threads = began.runtime.threads;
  if (threads && threads != command.runtime.threads) {
    const auto& given = command.runtime.threads;
    throw UsageError(join_text("the comparison was begun with --threads ", *threads, " and cannot go on with ",
                               given ? std::to_string(*given) : "auto", "; leave --threads out, or use another --out"));
  }
  return command;
}

void check_directory(const CompareCommand& command, const fs::path& home) {
  comparison_mark(home).check();
  const bool begun = path_exists(home / "cells") || path_exists(home / "results.json") ||
                     path_exists(home / kEncoders / kResolvedFile);
  HS_CHECK(command.resume || command.overwrite || !begun, home.string(),
           " holds a comparison already; --resume goes on with it, --overwrite deletes it, or choose another --out");
}

void check_same_data(const fs::path& home, const Subject& subject) {
  if (!path_exists(home / "results.json")) return;
  const Results before = read_results(home / "results.json");
  HS_CHECK(before.subject.data == subject.data, "the data of ", home.string(), " changed since it was begun: it was (",
           before.subject.data, ") and is (", subject.data, "); use another --out, or --overwrite");
  const std::string& hash = before.subject.fingerprint;
  HS_CHECK(hash.empty() || hash == subject.fingerprint, "the data of ", home.string(),
           " changed since it was begun, though not in size (", subject.data, "); use another --out, or --overwrite");
}

void check_same_variants(const fs::path& home, const std::vector<Variant>& variants) {
  if (!path_exists(home / "results.json")) return;
  const Results before = read_results(home / "results.json");
  for (const std::string& name : variant_names(before)) {
    const Variant was = variant_of(before, name);
    const Variant* now = find_variant(variants, name);
    HS_CHECK(now == nullptr || *now == was, "the variant ", name, " of ", home.string(), " was ", was.options.dump(),
             " and cannot become ", now == nullptr ? "" : now->options.dump(), "; give it another name");
  }
}

void begin_anew(const CompareCommand& command, const fs::path& home, KeptInputs& kept, Encoders encoders) {
  comparison_mark(home).clear(kept.names());
  // A folder of this name that no comparison left is the user's own.
  const bool ours = comparison_mark(home / kEncoders).begun();
  if (ours && encoders == Encoders::kForgotten) discard(home / kEncoders);
  go_on(command, home, kept);
}

void go_on(const CompareCommand& command, const fs::path& home, KeptInputs& kept) {
  comparison_mark(home).set();
  kept.keep();
  CompareCommand lasting = command;
  // Facts of this call alone; where it went would stand in the way of repeating it.
  lasting.overwrite = lasting.resume = lasting.json = lasting.latex = false;
  lasting.out = CompareCommand().out;
  lasting.runtime.threads = at::get_num_threads();  // results repeat for a number of threads
  make_paths_whole(&lasting.comparison);
  lasting.arguments().write_resolved(home / kResolvedFile);
}

void check_time(const CompareCommand& command, size_t models, double seconds) {
  HS_CHECK(command.beyond_a_day || seconds <= kSecondsPerDay, "training these ", models, " models would take about ",
           format_duration(seconds), " (hours:minutes:seconds; ", at::get_num_threads(),
           " threads), longer than a day; take fewer --steps, --seeds or --schemes, a smaller ",
           "--preset, or start it all the same with --beyond-a-day");
  if (seconds > 60) notice(join_text("training ", models, " models takes about ", format_duration(seconds)));
}

namespace {

// What made the results: the call that began them, and those that went on with other schemes or seeds.
std::string commands_so_far(const CompareCommand& command, const std::string& line) {
  const fs::path file = fs::path(command.out) / "results.json";
  if (!command.resume || !path_exists(file)) return line;
  const Results before = read_results(file);
  return command.adds ? before.command + "\n" + line : before.command;
}

}  // namespace

Results begin_results(const CompareCommand& command, const Subject& subject, const std::string& line,
                      const std::vector<Variant>& variants) {
  ComparisonOptions copy = command.comparison;
  const nlohmann::json options = to_json(fields(copy));
  return {.subject = subject,
          .match = match_name(copy.match),
          .command = commands_so_far(command, line),
          .environment = describe_machine(),
          .options = options,
          .variants = variants,
          .references = chosen_references(copy, variants)};
}

void run_cells(const CompareCommand& command, const std::vector<CellPlan>& plans, Results* results) {
  release_tensor_memory();              // of the steps that were timed: the models' own processes need it
  for (const CellPlan& plan : plans) {  // finished cells get no process of their own to do so
    remove_partials(cell_home(command.out, plan.key));
    remove_partials(cell_home(command.out, plan.key) / "checkpoints");
  }
  GridProgress progress(command.out, {.latex = command.latex});
  run_comparison(plans, command.out, process_runner(command.runtime, command.out, progress), progress, results);
  progress.finish();
}

namespace {

// What a finished model was made with must be what the plan would make: a default may have changed since.
void check_same_models(const std::vector<CellPlan>& plans, const Experiment& experiment, const fs::path& home) {
  for (const CellPlan& plan : plans) {
    const std::optional<Cell> cell = finished_cell(home, plan.key);
    if (!cell) continue;
    const ModelOptions model = experiment.model(plan.options);
    const nlohmann::json planned = std::visit([](auto one) { return to_json(fields(one)); }, model);
    for (const auto& [name, value] : planned.items()) {
      if (!cell->options.contains(name)) continue;  // of format 2, or of before there was that option
      const nlohmann::json& was = cell->options.at(name);
      HS_CHECK(was == value, name_of(plan.key), " was trained with --", name, " ", was.dump(),
               " and would now be with ", value.dump(), "; give --", name, " ", was.dump(), ", or use another --out");
    }
  }
}

// With other schemes the largest model may be another one, and with it what all were widened to.
void check_same_widths(const std::vector<CellPlan>& plans, const Experiment& experiment, const fs::path& home) {
  for (const CellPlan& plan : plans) {
    const std::optional<Cell> cell = finished_cell(home, plan.key);
    if (!cell) continue;
    const int64_t width = *shared_options(experiment.model(plan.options)).feed_forward_width;
    HS_CHECK(cell->feed_forward_width == width, "with these schemes --match parameters makes the feed-forward part of ",
             plan.key.variant, " ", width, " wide, and it was trained with ", cell->feed_forward_width,
             "; leave --schemes as it was, or use another --out");
  }
}

}  // namespace

Results compare_trained(CompareCommand& command, const std::string& line, const std::function<void()>& beginning) {
  const DirectoryLock lock(command.out);
  const fs::path home = lock.path();
  check_directory(command, home);
  const c10::Device device = start_runtime(command.runtime);
  warn_if_no_faster(command.comparison.train.precision, device);
  command.comparison.train.precision = resolve_precision(command.comparison.train.precision, device);
  explain_left_out(command.comparison);
  KeptInputs kept(home, &command.comparison.language.data);

  ProgressLine reading("text");
  const std::unique_ptr<Experiment> experiment =
      kept.reading([&] { return open_experiment(command.comparison, show_reading(reading)); });
  reading.hide();
  if (command.comparison.match == Match::kTime && command.comparison.scheme_steps.empty()) {
    match_time(
        trainable_variants(command.comparison),
        [&](const ComparisonOptions& cell) { return seconds_per_step(*experiment, cell, device); },
        &command.comparison);
  }
  std::vector<CellPlan> plans = plan_cells(command.comparison, *experiment);
  check_time(command, plans.size(), measured_seconds(plans, *experiment, home, device));
  check_disk(plans, *experiment, home);
  if (command.resume) {
    check_same_data(home, experiment->subject());
    if (command.comparison.match == Match::kParameters) check_same_widths(plans, *experiment, home);
    check_same_variants(home, chosen_variants(command.comparison));
    check_same_models(plans, *experiment, home);
    go_on(command, home, kept);
  } else {
    if (beginning) beginning();
    begin_anew(command, home, kept);  // only now: nothing of an earlier comparison is touched by a mistake
  }

  ComparisonOptions shared = command.comparison;
  experiment->share(home, &shared);
  for (CellPlan& plan : plans) plan.options.language.tokenizer_path = shared.language.tokenizer_path;
  Results results = begin_results(command, experiment->subject(), line, chosen_variants(command.comparison));
  run_cells(command, plans, &results);
  return results;
}

}  // namespace headshare
