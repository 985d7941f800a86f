// This method fine-tunes encoders, which it pre-trains where there are none: --task glue, superglue, squad, classify,
// pair, regress.

#include <algorithm>
#include <map>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"
#include "headshare/base/files/output_mark.h"
#include "headshare/base/notice.h"
#include "headshare/base/strings/format.h"
#include "headshare/compare/cell_run.h"
#include "headshare/compare/comparison_home.h"
#include "headshare/compare/fine_tuned/benchmark.h"
#include "headshare/compare/fine_tuned/encoders.h"
#include "headshare/compare/fine_tuned/fine_tuned_cell.h"
#include "headshare/compare/fine_tuned/pre_training.h"
#include "headshare/compare/method.h"
#include "headshare/compare/until_decided.h"
#include "headshare/compare/variants.h"
#include "headshare/models/noted_weights.h"
#include "headshare/report/statistics/wording.h"
#include "headshare/tasks/finetune/fine_tuning_options.h"

namespace headshare {
namespace {

// Tells whether --schemes names a scheme itself, not only as one of "all".
bool is_named(const ComparisonOptions& options, const std::string& scheme) {
  const auto& names = options.schemes;
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name != "all" && scheme_record(name).name == scheme; });
}

// Tells whether a variant was asked for by its scheme or its embedding.
bool is_named(const ComparisonOptions& options, const Variant& variant) {
  const auto& names = options.embeddings;
  const bool embedding = std::any_of(names.begin(), names.end(),
                                     [&](const std::string& name) { return variant.name.ends_with("+" + name); });
  return embedding || is_named(options, variant.name.substr(0, variant.name.find('+')));
}

// Returns the variants to fine-tune: the chosen ones and, with `all`, also the encoders of --encoders that are more
// than a scheme.
std::vector<Variant> wanted_variants(const ComparisonOptions& options, const EncoderSet& encoders) {
  std::vector<Variant> wanted = chosen_variants(options);
  const bool all = std::find(options.schemes.begin(), options.schemes.end(), "all") != options.schemes.end();
  if (!has_encoders(options) || !all || !options.embeddings.empty()) return wanted;
  for (const Variant& one : encoders.variants) {
    if (std::find(wanted.begin(), wanted.end(), one) == wanted.end()) wanted.push_back(one);
  }
  return wanted;
}

// Returns the wanted variants without those that --encoders lacks: Error where such a variant was asked for by name,
// else a notice. A variant that could not be pre-trained here stays, to be a failed cell with its reason.
std::vector<Variant> variants_to_fine_tune(const ComparisonOptions& options, const EncoderSet& encoders) {
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
      first_encoder(encoders, one.name);  // throws and says why there is none
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

VariantsByGate gates_of(const std::vector<Variant>& variants, const EncoderSet& encoders) {
  VariantsByGate gates;
  for (const Variant& one : variants) {
    const ModelOptions model = read_options(first_encoder(encoders, one.name));
    gates[gate_name(model.as<EncoderOptions>().attention)].push_back(one.name);
  }
  return gates;
}

// Returns the call that trains the encoders of `call`, or goes on with it; there may be more variants than before.
ComparisonCall pre_training_call(const ComparisonCall& call, ComparisonHost& host) {
  const fs::path own = call.out / kEncoders;
  const ComparisonOptions wanted = pre_training(call.options);
  const bool begun = !call.overwrite && path_exists(own / kResolvedFile);
  ComparisonCall made = call;
  made.out = own;
  made.resume = begun;
  made.latex = false;
  made.options = begun ? host.begun(own).options : wanted;
  // If one encoder serves all seeds, it serves added ones, too.
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
  // An earlier comparison is forgotten only after the encoders' text and time are checked, too.
  compare(encoders, host, [&] {
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
  const auto left = std::count_if(plans.begin(), plans.end(),
                                  [&](const CellPlan& plan) { return home.empty() || !is_finished(home, plan.key); });
  return cell * static_cast<double>(left);
}

// Checks for every finished cell that its encoder is still the one it was fine-tuned from.
void note_finished(const std::vector<CellPlan>& plans, const EncoderSet& encoders, const fs::path& home) {
  for (const CellPlan& plan : plans) {
    if (!finished_cell(home, plan.key)) continue;
    const auto encoder = encoders.checkpoints.find({plan.key.variant, encoder_seed(encoders, plan.key.seed)});
    if (encoder != encoders.checkpoints.end()) note_weights(cell_home(home, plan.key), encoder->second);
  }
}

void resolve_precisions(c10::Device device, ComparisonOptions* options) {
  Precision& tuning = options->own<BenchmarkOptions>().tuning.precision;
  warn_if_no_faster(tuning, device);
  tuning = resolve_precision(tuning, device);
  options->train.precision = resolve_precision(options->train.precision, device);
}

// Throws Error unless every seed that may be fine-tuned has an encoder to begin with.
void check_seeds(const ComparisonOptions& options, const EncoderSet& encoders) {
  const int64_t seeds = options.until_decided > 0 ? options.max_seeds : options.seeds;
  const auto first = static_cast<int64_t>(options.train.seed);
  encoder_seed(encoders, first);
  encoder_seed(encoders, first + seeds - 1);
}

// Returns the options of the cells, which name the encoders' directory.
ComparisonOptions with_encoders(const ComparisonCall& call) {
  ComparisonOptions options = call.options;
  if (!has_encoders(options)) options.own<BenchmarkOptions>().encoders = (call.out / kEncoders).string();
  return options;
}

using Fingerprints = std::map<std::string, std::string>;  // by task

Fingerprints fingerprints_of(const std::vector<BenchmarkTask>& tasks) {
  Fingerprints found;
  for (const BenchmarkTask& task : tasks) found[task.name] = task.fingerprint;
  return found;
}

// PreparedFineTuning is a comparison whose encoders exist.
class PreparedFineTuning : public PreparedComparison {
 public:
  PreparedFineTuning(const ComparisonCall& call, EncoderSet encoders, c10::Device device, bool has_begun)
      : encoders_(std::move(encoders)),
        options_(with_encoders(call)),
        variants_(variants_to_fine_tune(call.options, encoders_)),
        has_begun_(has_begun) {
    const std::vector<Variant> there = with_encoder(variants_, encoders_);
    check_seeds(call.options, encoders_);
    check_comparable(encoders_, there);
    check_references(options_, variants_);  // before anything is forgotten
    const std::vector<BenchmarkTask> tasks =
        read_benchmark({.options = options_,
                        .encoder = load_encoder_model(first_encoder(encoders_, there.front().name)),
                        .device = device,
                        .timed = true});
    say_notes(tasks);
    note_data(there, tasks, device);
    subject_ = benchmark_subject(options_, tasks, encoders_);
    subject_.add_sentence(gate_sentence(gates_of(there, encoders_)));
    first_ = plan_variants(options_, variants_);
    forecast_ = with_added_seeds({.data = subject_.data,
                                  .models = first_.size(),
                                  .seconds = unfinished_seconds(first_, finished_home(call), tasks)},
                                 call.options);
  }

  const Subject& subject() const override { return subject_; }
  const Forecast& forecast() const override { return forecast_; }
  std::vector<Variant> variants() const override { return variants_; }
  std::vector<CellPlan> cells(const ComparisonOptions& options) const override {
    ComparisonOptions with_seeds = options_;
    with_seeds.seeds = options.seeds;
    std::vector<CellPlan> cells = plan_variants(with_seeds, variants_);
    for (CellPlan& cell : cells) {
      const auto data = data_.find(cell.key.variant);
      if (data != data_.end()) cell.data = data->second;
      note_encoder(&cell);
    }
    return cells;
  }
  // The steps of fine-tuning are equal, even if time was made equal for the encoders.
  std::string match() const override {
    return encoders_.parameters_matched() ? encoders_.match : match_name(Match::kSteps);
  }
  bool has_begun() const override { return has_begun_; }
  void check_finished(const ComparisonCall& call) const override { note_finished(first_, encoders_, call.out); }

 private:
  // Notes what the cells of each variant read: its encoders' tokenizer makes rows of the text.
  void note_data(const std::vector<Variant>& there, const std::vector<BenchmarkTask>& tasks, c10::Device device) {
    std::map<std::string, Fingerprints> read;  // by the tokenizer
    for (const Variant& one : there) {
      const fs::path encoder = first_encoder(encoders_, one.name);
      const std::string tokenizer = fingerprint(*load_tokenizer(encoder));
      if (read.empty()) read[tokenizer] = fingerprints_of(tasks);  // with the first one's
      if (!read.contains(tokenizer)) {
        read[tokenizer] = fingerprints_of(
            read_benchmark({.options = options_, .encoder = load_encoder_model(encoder), .device = device}));
      }
      data_[one.name] = read[tokenizer];
    }
  }

  void note_encoder(CellPlan* cell) const {
    const auto encoder = encoders_.checkpoints.find({cell->key.variant, encoder_seed(encoders_, cell->key.seed)});
    if (encoder == encoders_.checkpoints.end()) return;  // the cell fails and says why there is none
    std::string& weights = weights_[encoder->second];
    if (weights.empty()) weights = weights_fingerprint(encoder->second);
    cell->data[kEncoderWeights] = weights;
  }

  EncoderSet encoders_;
  ComparisonOptions options_;  // the options of the cells
  std::vector<Variant> variants_;
  bool has_begun_;
  std::map<std::string, Fingerprints> data_;         // by the variant
  mutable std::map<fs::path, std::string> weights_;  // the fingerprints that were computed, by the checkpoint
  std::vector<CellPlan> first_;                      // the cells of the first seeds
  Subject subject_;
  Forecast forecast_;
};

// Outlines the encoders that exist and would be fine-tuned, as fine-tuning begins with them.
Outline encoders_outline(const ComparisonOptions& options) {
  Outline outline{.heading = "encoder", .caches = false, .models = {}, .sentence = {}};
  const BenchmarkOptions& benchmark = options.own<BenchmarkOptions>();
  if (has_encoders(options)) {
    const EncoderSet encoders = find_encoders(benchmark.encoders);
    for (const Variant& one : with_encoder(variants_to_fine_tune(options, encoders), encoders)) {
      const ModelOptions model = read_options(first_encoder(encoders, one.name));
      outline.models.push_back(
          {.name = one.name, .options = starting_options(model.as<EncoderOptions>(), {}, benchmark.job.tuning)});
    }
  }
  outline.sentence =
      join_text("each fine-tuned on ", list_text(fine_tuning_jobs(options)), "; ", benchmark.job.tuning.epochs,
                " epochs, ", plural(static_cast<size_t>(options.seeds), "seed"), ", ",
                plural(benchmark.tuning.learning_rates.size(), "learning rate"));
  return outline;
}

Forecast forecast_with_pre_training(const ComparisonCall& call, ComparisonHost& host) {
  ComparisonCall encoders = call;
  encoders.options = pre_training(call.options);
  Forecast forecast = trained_method().forecast(encoders, host);
  const std::vector<BenchmarkTask> tasks = read_benchmark(
      {.options = call.options, .encoder = stand_in_encoder(call.options), .device = host.start(), .timed = true});
  const std::vector<CellPlan> cells = plan_variants(call.options, trainable_variants(call.options));
  const Forecast fine_tuning = with_added_seeds(
      {.data = "", .models = cells.size(), .seconds = unfinished_seconds(cells, {}, tasks)}, call.options);
  forecast.models += fine_tuning.models;
  forecast.seconds += fine_tuning.seconds;
  return forecast;
}

class FineTunedMethod : public ComparisonMethod {
 public:
  std::string unit(const ComparisonOptions& /*options*/) const override { return "examples/s"; }
  int64_t accumulation(const ComparisonOptions& options) const override {
    return options.own<BenchmarkOptions>().tuning.accumulation;
  }

  void check(const ComparisonOptions& options) const override {
    check_pre_training(options);
    if (has_encoders(options)) return;  // their own comparison chose the variants
    std::vector<Variant> variants = chosen_variants(options);
    std::erase_if(variants, [](const Variant& one) { return !is_trained(one.scheme); });
    check_references(options, variants);
  }

  std::vector<Outline> outlines(const ComparisonOptions& options) const override {
    std::vector<Outline> list;
    if (!has_encoders(options)) list = trained_method().outlines(pre_training(options));
    list.push_back(encoders_outline(options));
    return list;
  }
  bool has_data(const ComparisonOptions& options) const override {
    return has_encoders(options) || !options.own<TextOptions>().data.text.empty();
  }

  Forecast forecast(ComparisonCall call, ComparisonHost& host) const override {
    if (!has_encoders(call.options)) return forecast_with_pre_training(call, host);
    const c10::Device device = host.start();
    resolve_precisions(device, &call.options);
    EncoderSet encoders = find_encoders(call.options.own<BenchmarkOptions>().encoders);
    return PreparedFineTuning(call, std::move(encoders), device, /*has_begun=*/false).forecast();
  }

  // Missing encoders are pre-trained first, into OUT/encoders, once the tasks' data was read and found in order.
  std::unique_ptr<PreparedComparison> prepare(ComparisonCall& call, KeptInputs& kept,
                                              ComparisonHost& host) const override {
    const bool trained = has_encoders(call.options);
    HS_CHECK(trained || !call.options.own<TextOptions>().data.text.empty(), "--task ", call.options.task,
             " fine-tunes encoders: name a comparison of them with --encoders DIR, or a text to train them on with ",
             "--text");
    const c10::Device device = host.start();
    resolve_precisions(device, &call.options);
    if (!trained) {
      // A mistake in a task's data must not cost a night of pre-training.
      read_benchmark({.options = call.options, .encoder = stand_in_encoder(call.options), .device = device});
      pre_train(call, kept, host);
    }
    EncoderSet encoders = find_encoders(with_encoders(call).own<BenchmarkOptions>().encoders);
    return std::make_unique<PreparedFineTuning>(call, std::move(encoders), device, /*has_begun=*/!trained);
  }

  Cell run_cell(const CellPlan& plan, const CellPlace& place, c10::Device device, Observer& observer,
                const std::function<bool()>& stop_requested) const override {
    return run_fine_tuned_cell(plan, place, device, observer, stop_requested);
  }
};

}  // namespace

const ComparisonMethod& fine_tuned_method() {
  static const FineTunedMethod method;
  return method;
}

}  // namespace headshare
