#include "headshare/compare/compare_tuned.h"

#include <algorithm>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/directory_lock.h"
#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/base/output_mark.h"
#include "headshare/compare/benchmark.h"
#include "headshare/compare/cell_run.h"
#include "headshare/compare/compare_trained.h"
#include "headshare/compare/comparison_home.h"
#include "headshare/compare/encoders.h"
#include "headshare/compare/until_decided.h"
#include "headshare/compare/variants.h"
#include "headshare/models/noted_weights.h"
#include "headshare/tasks/finetune/fine_tuning_options.h"

namespace headshare {
namespace {

// Whether a scheme stands for itself in --schemes, not only as one of "all".
bool is_named(const ComparisonOptions& options, const std::string& scheme) {
  const auto& names = options.schemes;
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name != "all" && scheme_record(name).name == scheme; });
}

// Whether a variant was asked for by its scheme or its embedding.
bool is_named(const ComparisonOptions& options, const Variant& variant) {
  const auto& names = options.embeddings;
  const bool embedding = std::any_of(names.begin(), names.end(),
                                     [&](const std::string& name) { return variant.name.ends_with("+" + name); });
  return embedding || is_named(options, variant.name.substr(0, variant.name.find('+')));
}

// What to fine-tune: the chosen variants, of --encoders also those that are more than a scheme of `all`.
std::vector<Variant> wanted_variants(const ComparisonOptions& options, const EncoderSet& encoders) {
  std::vector<Variant> wanted = chosen_variants(options);
  const bool all = std::find(options.schemes.begin(), options.schemes.end(), "all") != options.schemes.end();
  if (!has_encoders(options) || !all || !options.embeddings.empty()) return wanted;
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
    const auto missing = encoders.missing.find({one.name, encoders.seeds.front()});
    const bool named = is_named(options, one);
    if (!is_trained(one.scheme)) {
      const std::string& trained = scheme_record(one.scheme).weights_of;
      if (named) {
        notice(join_text(one.name, " is left out: its weights are ", trained, "'s, and so is what they learn"));
      }
    } else if (encoders.has(one.name) || (!has_encoders(options) && missing != encoders.missing.end())) {
      variants.push_back(one);
    } else if (has_encoders(options) && named) {
      first_encoder(encoders, one.name);  // says why there is none
    } else if (missing != encoders.missing.end()) {
      notice(join_text(one.name, " is left out: there is no encoder of it in ", encoders.home.string(), ": ",
                       missing->second));
    }
  }
  const bool any =
      std::any_of(variants.begin(), variants.end(), [&](const Variant& one) { return encoders.has(one.name); });
  HS_CHECK(any, "there is no encoder to fine-tune in ", encoders.home.string());
  return variants;
}

std::vector<Variant> with_encoder(std::vector<Variant> variants, const EncoderSet& encoders) {
  std::erase_if(variants, [&](const Variant& one) { return !encoders.has(one.name); });
  return variants;
}

// The call that trains the encoders of `call`, or goes on with it; there may be more variants than before.
ComparisonCall pre_training_call(const ComparisonCall& call, ComparisonHost& host) {
  const fs::path own = call.out / kEncoders;
  const ComparisonOptions wanted = pre_training(call.options);
  const bool begun = !call.overwrite && path_exists(own / kResolvedFile);
  ComparisonCall made = call;
  made.out = own;
  made.resume = begun;
  made.latex = false;
  made.options = begun ? host.begun(own).options : wanted;
  // One encoder for all seeds serves added ones, too.
  const int64_t seeds = made.options.seeds == 1 ? 1 : std::max(made.options.seeds, wanted.seeds);
  made.adds =
      made.options.schemes != wanted.schemes || made.options.variants != wanted.variants || made.options.seeds != seeds;
  made.options.seeds = seeds;
  made.options.schemes = wanted.schemes;
  made.options.variants = wanted.variants;
  return made;
}

void pre_train(const ComparisonCall& call, KeptInputs& kept, ComparisonHost& host) {
  ComparisonCall encoders = pre_training_call(call, host);
  notice("encoders first, in " + encoders.out.string());
  // What an earlier call left is forgotten once the encoders' text and time are checked, too.
  compare_trained(encoders, host, [&] {
    if (!call.resume) begin_anew(call, kept, host, Encoders::kKept);
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
    return home.empty() || !fs::exists(cell_home(home, plan.key) / "cell.json");
  });
  return cell * static_cast<double>(left);
}

// What a finished cell was fine-tuned from must be what its encoder is now.
void note_finished(const std::vector<CellPlan>& plans, const EncoderSet& encoders, const fs::path& home) {
  for (const CellPlan& plan : plans) {
    if (!finished_cell(home, plan.key)) continue;
    const auto encoder = encoders.checkpoints.find({plan.key.variant, encoder_seed(encoders, plan.key.seed)});
    if (encoder != encoders.checkpoints.end()) note_weights(cell_home(home, plan.key), encoder->second);
  }
}

void resolve_precisions(c10::Device device, ComparisonOptions* options) {
  Precision& tuning = options->own<FineTuningOptions>().tuning.precision;
  warn_if_no_faster(tuning, device);
  tuning = resolve_precision(tuning, device);
  options->train.precision = resolve_precision(options->train.precision, device);
}

// Every seed that may be fine-tuned begins with an encoder.
void check_seeds(const ComparisonOptions& options, const EncoderSet& encoders) {
  const int64_t seeds = options.until_decided > 0 ? options.max_seeds : options.seeds;
  const auto first = static_cast<int64_t>(options.train.seed);
  encoder_seed(encoders, first);
  encoder_seed(encoders, first + seeds - 1);
}

// The options of the cells: the encoders are there by now.
ComparisonOptions with_encoders(const ComparisonCall& call) {
  ComparisonOptions options = call.options;
  if (!has_encoders(options)) options.own<FineTuningOptions>().encoders = (call.out / kEncoders).string();
  return options;
}

// The cells with the tasks that they are fine-tuned on.
struct TuningPlan {
  std::vector<Variant> variants;
  std::vector<CellPlan> cells;
  Subject subject;
  Forecast forecast = {};
};

TuningPlan plan_tuning(const ComparisonCall& call, const EncoderSet& encoders, c10::Device device) {
  const ComparisonOptions options = with_encoders(call);
  TuningPlan plan{.variants = variants_to_tune(call.options, encoders), .cells = {}, .subject = {}};
  const std::vector<Variant> there = with_encoder(plan.variants, encoders);
  check_seeds(call.options, encoders);
  check_comparable(encoders, there);
  chosen_references(options, plan.variants);  // refuses a name that is not among them, before anything is forgotten
  const std::vector<BenchmarkTask> tasks =
      read_benchmark({.options = options,
                      .encoder = load_encoder_model(first_encoder(encoders, there.front().name)),
                      .device = device,
                      .timed = true});
  say_notes(tasks);
  plan.subject = benchmark_subject(options, tasks, encoders);
  plan.cells = plan_fine_tuning(options, plan.variants);
  plan.forecast = with_added_seeds({.data = plan.subject.data,
                                    .models = plan.cells.size(),
                                    .seconds = unfinished_seconds(plan.cells, finished_home(call), tasks)},
                                   call.options);
  return plan;
}

}  // namespace

bool has_encoders(const ComparisonOptions& options) { return !options.own<FineTuningOptions>().encoders.empty(); }

void check_pre_training(const ComparisonOptions& options) {
  if (!fine_tunes(options)) return;
  const std::optional<int64_t> encoder_seeds = options.own<FineTuningOptions>().encoder_seeds;
  HS_CHECK(!has_encoders(options) || !encoder_seeds,
           "--encoder-seeds is of pre-training, and the --encoders are trained already; leave it out");
  HS_CHECK(!encoder_seeds || *encoder_seeds == 1 || *encoder_seeds >= options.seeds, "--encoder-seeds ",
           encoder_seeds.value_or(0), " is less than --seeds ", options.seeds,
           ", and each seed begins with its own encoder; use 1 for one encoder for all, or at least ", options.seeds);
  HS_CHECK(has_encoders(options) || options.until_decided == 0 || encoder_seeds, "--until-decided adds seeds of ",
           "fine-tuning, and each begins with its own encoder; use --encoder-seeds ", options.max_seeds,
           ", --encoder-seeds 1 for one encoder for all seeds, or --encoders of a finished comparison");
  if (!has_encoders(options)) return;
  ComparisonOptions given = options;
  ComparisonOptions untouched = preset_options(options.task, options.preset, options);
  const nlohmann::json defaults = to_json(fields(untouched));
  Fields list = fields(given.language);
  std::erase_if(list, [](const Field& one) { return one.name == "scheme"; });
  append(&list, task_family(pre_training_task(options)).fields(given));
  append(&list, fields(given.train));
  for (Field& one : fields(given)) {
    if (one.name == "match" || one.name == "sweep" || one.name == "variants") list.push_back(std::move(one));
  }
  for (const Field& one : list) {
    HS_CHECK(one.name == "seed" || one.value() == defaults.at(one.name), "--", one.name,
             " is of pre-training, and the --encoders are trained already; leave it out");
  }
}

Forecast forecast_tuned(ComparisonCall call, ComparisonHost& host) {
  if (has_encoders(call.options)) {
    const c10::Device device = host.start();
    resolve_precisions(device, &call.options);
    return plan_tuning(call, find_encoders(call.options.own<FineTuningOptions>().encoders), device).forecast;
  }
  ComparisonCall encoders = call;
  encoders.options = pre_training(call.options);
  Forecast forecast = forecast_trained(encoders, host);
  const std::vector<BenchmarkTask> tasks = read_benchmark(
      {.options = call.options, .encoder = stand_in_encoder(call.options), .device = host.start(), .timed = true});
  const std::vector<CellPlan> cells = plan_fine_tuning(call.options, trainable_variants(call.options));
  const Forecast tuning = with_added_seeds(
      {.data = "", .models = cells.size(), .seconds = unfinished_seconds(cells, {}, tasks)}, call.options);
  forecast.models += tuning.models;
  forecast.seconds += tuning.seconds;
  return forecast;
}

Results compare_tuned(ComparisonCall& call, ComparisonHost& host) {
  const DirectoryLock lock(call.out);
  call.out = lock.path();
  check_directory(call);
  const bool trained = has_encoders(call.options);
  HS_CHECK(trained || !call.options.language.data.text.empty(), "--task ", call.options.task,
           " fine-tunes encoders: name a comparison of them with --encoders DIR, or a text to train them on with ",
           "--text");
  const c10::Device device = host.start();
  resolve_precisions(device, &call.options);
  KeptInputs kept(call.out, &call.options.language.data);
  if (!trained) {
    // A mistake in a task's data must not cost a night of pre-training.
    read_benchmark({.options = call.options, .encoder = stand_in_encoder(call.options), .device = device});
    pre_train(call, kept, host);
  }
  const EncoderSet encoders = find_encoders(with_encoders(call).own<FineTuningOptions>().encoders);
  const TuningPlan plan = plan_tuning(call, encoders, device);
  check_time(call, plan.forecast);
  if (call.resume) {
    check_same_data(call.out, plan.subject);
    check_same_variants(call.out, plan.variants);
    go_on(call, kept, host);
  } else if (trained) {
    begin_anew(call, kept, host);
  }
  say_forecast(call, plan.forecast);
  note_finished(plan.cells, encoders, call.out);
  Results results = begin_results(call, plan.subject, plan.variants, host);
  results.match =
      encoders.parameters_matched() ? encoders.match : match_name(Match::kSteps);  // fine-tuning's own steps
  const ComparisonOptions of_cells = with_encoders(call);
  run_until_decided(
      call,
      [&](const ComparisonOptions& options) {
        ComparisonOptions cells = of_cells;
        cells.seeds = options.seeds;
        return plan_fine_tuning(cells, plan.variants);
      },
      host, &results);
  return results;
}

std::vector<std::pair<std::string, ModelOptions>> encoders_to_tune(const ComparisonOptions& options) {
  std::vector<std::pair<std::string, ModelOptions>> models;
  if (!has_encoders(options)) return models;
  const FineTuningOptions& tuning = options.own<FineTuningOptions>();
  const EncoderSet encoders = find_encoders(tuning.encoders);
  for (const Variant& one : with_encoder(variants_to_tune(options, encoders), encoders)) {
    const ModelOptions model = read_options(first_encoder(encoders, one.name));
    models.emplace_back(one.name, starting_options(std::get<EncoderOptions>(model), {}, tuning.job.tuning));
  }
  return models;
}

}  // namespace headshare
