#include "headshare/cli/compare_tuned.h"

#include <algorithm>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/directory_lock.h"
#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/base/notice.h"
#include "headshare/base/prefixed.h"
#include "headshare/cli/resume.h"
#include "headshare/cli/table.h"
#include "headshare/cli/terminal.h"
#include "headshare/compare/benchmark.h"
#include "headshare/compare/cell_run.h"
#include "headshare/compare/encoders.h"
#include "headshare/compare/variants.h"
#include "headshare/models/noted_weights.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

bool has_encoders(const ComparisonOptions& options) { return !options.fine_tuning.encoders.empty(); }

// Whether a scheme stands for itself in --schemes, not only as one of "all".
bool is_named(const ComparisonOptions& options, const std::string& scheme) {
  const auto& names = options.schemes;
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name != "all" && scheme_record(name).name == scheme; });
}

// What to fine-tune: the chosen variants, of --encoders also those that are more than a scheme of `all`.
std::vector<Variant> wanted_variants(const ComparisonOptions& options, const EncoderSet& encoders) {
  std::vector<Variant> wanted = chosen_variants(options);
  const bool all = std::find(options.schemes.begin(), options.schemes.end(), "all") != options.schemes.end();
  if (!has_encoders(options) || !all) return wanted;
  for (const Variant& one : encoders.variants) {
    if (std::find(wanted.begin(), wanted.end(), one) == wanted.end()) wanted.push_back(one);
  }
  return wanted;
}

// Without those that --encoders lacks: refused where they were asked for by name, else left out in words; what could
// not be pre-trained here stays, to be a failed cell with its reason.
std::vector<Variant> variants_to_tune(const ComparisonOptions& options, const EncoderSet& encoders) {
  std::vector<Variant> variants;
  for (const Variant& one : wanted_variants(options, encoders)) {
    const auto missing = encoders.missing.find(one.name);
    const bool named = is_named(options, one.name);
    if (!is_trained(one.scheme)) {
      const std::string& trained = scheme_record(one.scheme).weights_of;
      if (named) {
        notice(join_text(one.name, " is left out: its weights are ", trained, "'s, and so is what they learn"));
      }
    } else if (encoders.checkpoints.contains(one.name) ||
               (!has_encoders(options) && missing != encoders.missing.end())) {
      variants.push_back(one);
    } else if (has_encoders(options) && named) {
      encoder_of(encoders, one.name);  // says why there is none
    } else if (missing != encoders.missing.end()) {
      notice(join_text(one.name, " is left out: there is no encoder of it in ", encoders.home.string(), ": ",
                       missing->second));
    }
  }
  const bool any = std::any_of(variants.begin(), variants.end(),
                               [&](const Variant& one) { return encoders.checkpoints.contains(one.name); });
  HS_CHECK(any, "there is no encoder to fine-tune in ", encoders.home.string());
  return variants;
}

std::vector<Variant> with_encoder(std::vector<Variant> variants, const EncoderSet& encoders) {
  std::erase_if(variants, [&](const Variant& one) { return !encoders.checkpoints.contains(one.name); });
  return variants;
}

void pre_train(const CompareCommand& command, const std::string& line, KeptInputs& kept) {
  const fs::path own = fs::path(command.out) / kEncoders;
  const bool begun = !command.overwrite && path_exists(own / kResolvedFile);
  CompareCommand encoders = begun ? resumed_command({"--resume", "--out", own.string()}, own.string()) : command;
  const ComparisonOptions wanted = pre_training(command.comparison);
  if (!begun) encoders.comparison = wanted;
  encoders.adds =
      begun && (encoders.comparison.schemes != wanted.schemes || encoders.comparison.variants != wanted.variants);
  encoders.comparison.schemes = wanted.schemes;  // may be more than before
  encoders.comparison.variants = wanted.variants;
  encoders.out = own.string();
  encoders.resume = begun;
  encoders.overwrite = command.overwrite;
  encoders.json = encoders.latex = false;
  encoders.beyond_a_day = command.beyond_a_day;
  encoders.runtime = command.runtime;
  notice("encoders first, in " + own.string());
  // What an earlier call left is forgotten once the encoders' text and time are checked, too.
  compare_trained(encoders, line, [&] {
    if (!command.resume) begin_anew(command, command.out, kept, Encoders::kKept);
  });
}

void say_notes(const std::vector<BenchmarkTask>& tasks) {
  for (const BenchmarkTask& task : tasks) {
    for (const std::string& note : task.notes) notice(task.name + ": " + note);
  }
}

double unfinished_seconds(const std::vector<CellPlan>& plans, const fs::path& home,
                          const std::vector<BenchmarkTask>& tasks) {
  double cell = 0;
  for (const BenchmarkTask& task : tasks) cell += task.training_seconds;
  const auto left = std::count_if(plans.begin(), plans.end(), [&](const CellPlan& plan) {
    return !fs::exists(cell_home(home, plan.key) / "cell.json");
  });
  return cell * static_cast<double>(left);
}

// Options of `list` that differ from what the task and preset begin with.
void refuse_changed(const ComparisonOptions& options, const Fields& list, const std::string& reason) {
  ComparisonOptions given = options;
  ComparisonOptions untouched = preset_options(options.task, options.preset);
  const nlohmann::json values = to_json(fields(given));
  const nlohmann::json defaults = to_json(fields(untouched));
  for (const Field& one : list) {
    if (one.name == "seed" || values.at(one.name) == defaults.at(one.name)) continue;
    throw UsageError(join_text("--", one.name, " ", reason));
  }
}

// The encoders are there: nothing that pre-training asks for has an effect.
void refuse_pre_training(const ComparisonOptions& options) {
  ComparisonOptions copy = options;
  Fields list = fields(copy.language);
  std::erase_if(list, [](const Field& one) { return one.name == "scheme"; });
  append(&list, fields(copy.masked));
  append(&list, fields(copy.train));
  for (Field& one : fields(copy)) {
    if (one.name == "match" || one.name == "sweep" || one.name == "variants") list.push_back(std::move(one));
  }
  refuse_changed(options, list, "is of pre-training, and the --encoders are trained already; leave it out");
}

// Options of fine-tuning on other kinds of data.
void refuse_other_data(const ComparisonOptions& options) {
  FineTuningOptions tuning = options.fine_tuning;
  const bool squad = options.task == ComparisonTask::kSquad;
  const std::string but = ", and --task is " + task_name(options.task) + "; leave it out";
  if (!squad) {
    Fields answers = fields(tuning.job.windows);
    append(&answers, fields(tuning.job.answers));
    refuse_changed(options, prefixed(kFineTuningPrefix, std::move(answers)), "is about answers in texts" + but);
  }
  if (squad || is_suite(options.task)) {
    refuse_changed(options, prefixed(kFineTuningPrefix, fields(tuning.job.table)),
                   "is about a table of your own" + but);
  }
}

}  // namespace

void check_tuned_options(const ComparisonOptions& options) {
  if (!is_fine_tuning(options.task)) {
    FineTuningOptions tuning = options.fine_tuning;
    refuse_changed(options, fields(tuning),
                   "belongs to --task glue, superglue, squad, classify, pair or regress; this comparison's task is " +
                       task_name(options.task));
    return;
  }
  if (has_encoders(options)) refuse_pre_training(options);
  refuse_other_data(options);
  as_usage([&] {
    fine_tuning_jobs(options);
    try {
      learning_rates(options.fine_tuning.tuning);
    } catch (const Error& error) {
      throw UsageError(in_fine_tuning_words(error.what()));
    }
  });
}

Results compare_tuned(CompareCommand& command, const std::string& line) {
  const DirectoryLock lock(command.out);
  const fs::path home = lock.path();
  check_directory(command, home);
  ComparisonOptions& options = command.comparison;
  const bool trained = has_encoders(options);
  HS_CHECK(trained || !options.language.data.text.empty(), "--task ", task_name(options.task), " fine-tunes encoders: ",
           "name a comparison of them with --encoders DIR, or a text to train them on with --text");
  const c10::Device device = start_runtime(command.runtime);
  warn_if_no_faster(options.fine_tuning.tuning.precision, device);
  options.fine_tuning.tuning.precision = resolve_precision(options.fine_tuning.tuning.precision, device);
  options.train.precision = resolve_precision(options.train.precision, device);
  KeptInputs kept(home, &options.language.data);
  if (!trained) {
    // A mistake in a task's data must not cost a night of pre-training.
    read_benchmark({.options = options, .encoder = stand_in_encoder(options), .device = device});
    pre_train(command, line, kept);
  }
  ComparisonOptions cells = options;
  if (!trained) cells.fine_tuning.encoders = (home / kEncoders).string();

  const EncoderSet encoders = find_encoders(cells.fine_tuning.encoders);
  const std::vector<Variant> variants = variants_to_tune(options, encoders);
  const std::vector<Variant> there = with_encoder(variants, encoders);
  check_comparable(encoders, there);
  chosen_references(options, variants);  // refuses a name that is not among them, before anything is forgotten
  const std::vector<BenchmarkTask> tasks =
      read_benchmark({.options = cells,
                      .encoder = load_encoder_model(encoder_of(encoders, there.front().name)),
                      .device = device,
                      .timed = true});
  say_notes(tasks);
  const Subject subject = benchmark_subject(cells, tasks, encoders.described());
  const std::vector<CellPlan> plans = plan_fine_tuning(cells, variants);
  check_time(command, plans.size(), unfinished_seconds(plans, home, tasks));
  if (command.resume) {
    check_same_data(home, subject);
    check_same_variants(home, variants);
    go_on(command, home, kept);
  } else if (trained) {
    begin_anew(command, home, kept);
  }
  for (const CellPlan& plan : plans) {
    const auto encoder = encoders.checkpoints.find(plan.key.variant);
    if (encoder == encoders.checkpoints.end() || !finished_cell(home, plan.key)) continue;
    note_weights(cell_home(home, plan.key), encoder->second);
  }
  Results results = begin_results(command, subject, line, variants);
  results.match =
      encoders.parameters_matched() ? encoders.match : match_name(Match::kSteps);  // fine-tuning's own steps
  run_cells(command, plans, &results);
  return results;
}

std::string tuned_plan_text(const ComparisonOptions& options) {
  std::string text;
  if (has_encoders(options)) {
    const EncoderSet encoders = find_encoders(options.fine_tuning.encoders);
    TextTable table({{.heading = "encoder", .align = Align::kLeft},
                     {.heading = "attention parameters"},
                     {.heading = "total parameters"}});
    for (const Variant& one : with_encoder(variants_to_tune(options, encoders), encoders)) {
      const ModelOptions model = read_options(encoder_of(encoders, one.name));
      const ModelSize size =
          size_of(starting_options(std::get<EncoderOptions>(model), {}, options.fine_tuning.job.tuning));
      table.add({one.name, format_count(static_cast<double>(size.attention_parameters)),
                 format_count(static_cast<double>(size.total_parameters))});
    }
    text = table.text(terminal_width(Stream::kOut)) + "\n";
  }
  const size_t rates = learning_rates(options.fine_tuning.tuning).size();
  return text + join_text("each fine-tuned on ", list_text(fine_tuning_jobs(options)), "; ",
                          options.fine_tuning.job.tuning.epochs, " epochs, ",
                          plural(static_cast<size_t>(options.seeds), "seed"), ", ", plural(rates, "learning rate"),
                          "\n");
}

}  // namespace headshare
