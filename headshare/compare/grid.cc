#include "headshare/compare/grid.h"

#include <algorithm>
#include <cmath>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/report/results/results_json.h"

namespace headshare {
namespace {

// Returns the options of one model: its variant, its seed and, where time is matched, its own number of steps.
ComparisonOptions of_cell(const ComparisonOptions& options, const Variant& variant, int64_t seed) {
  ComparisonOptions cell = with_variant(options, variant);
  cell.train.seed = seed;
  for (const std::string& item : options.scheme_steps) {
    const std::string name = variant.name + "=";
    if (!item.starts_with(name)) continue;
    int64_t steps = 0;
    field("scheme-steps", &steps, "", {.min = 1}).parse(item.substr(name.size()));
    cell.train.steps = steps;
  }
  return cell;
}

// Throws Error for a variant that was not there when time was matched, because its steps are not known.
void check_steps_known(const ComparisonOptions& options, const Variant& variant) {
  const std::string name = variant.name + "=";
  const auto names = [&](const std::string& item) { return item.starts_with(name); };
  HS_CHECK(options.scheme_steps.empty() || std::any_of(options.scheme_steps.begin(), options.scheme_steps.end(), names),
           variant.name, " was not there when --match time gave each its steps (--scheme-steps); add ", variant.name,
           "=STEPS there, or compare it in another --out");
}

int64_t total_parameters(const Experiment& experiment, const ComparisonOptions& cell) {
  return measure(experiment.model(cell)).total_parameters;
}

// Returns the largest number of parameters that one of the variants has.
int64_t largest_total(const Experiment& experiment, const ComparisonOptions& options,
                      const std::vector<Variant>& variants) {
  int64_t largest = 0;
  for (const Variant& one : variants) {
    largest = std::max(largest, total_parameters(experiment, with_variant(options, one)));
  }
  return largest;
}

// Widens the feed-forward part of `cell` until its total parameters are nearest to `total`.
void widen_to(const Experiment& experiment, int64_t total, ComparisonOptions* cell) {
  const int64_t width = *experiment.model(*cell).common().feed_forward_width;
  const auto with_width = [&](int64_t wide) {
    ComparisonOptions options = *cell;
    options.model.feed_forward_width = wide;
    return total_parameters(experiment, options);
  };
  // Parameters grow linearly with the width.
  const int64_t narrow = with_width(width);
  const auto per_unit = static_cast<double>(with_width(width + 1) - narrow);
  cell->model.feed_forward_width =
      width + static_cast<int64_t>(std::llround(static_cast<double>(total - narrow) / per_unit));
}

// Pairs each variant that has another's weights with that other one. Throws Error where the other is not compared.
std::vector<std::pair<Variant, Variant>> rewritten_variants(const ComparisonOptions& options,
                                                            const std::vector<Variant>& chosen) {
  std::vector<std::pair<Variant, Variant>> rewritten;
  for (const Variant& one : chosen) {
    const std::string& scheme = scheme_record(one.scheme).weights_of;
    if (scheme.empty()) continue;
    const Variant* trained = trained_twin(options, one, chosen);
    HS_CHECK(trained != nullptr, one.name, " is ", scheme, " rewritten for decoding and is not trained by itself; ",
             one.name == one.scheme ? "add " + scheme + " to --schemes"
                                    : "add a variant that differs from it in scheme=" + scheme + " alone");
    rewritten.emplace_back(one, *trained);
  }
  return rewritten;
}

// Adds the cells of one seed and one setting; `options` have the setting already.
void add_cells(const ComparisonOptions& options, const std::string& setting, int64_t seed,
               const std::vector<std::pair<Variant, Variant>>& rewritten, const Experiment& experiment,
               std::vector<CellPlan>* plans) {
  const std::vector<Variant> variants = trainable_variants(options);
  const int64_t total = options.match == Match::kParameters ? largest_total(experiment, options, variants) : 0;
  const auto add = [&](const Variant& variant) {
    plans->push_back({.key = {variant.name, setting, seed}, .options = of_cell(options, variant, seed)});
    if (options.match == Match::kParameters) widen_to(experiment, total, &plans->back().options);
  };
  for (const Variant& one : variants) {
    check_steps_known(options, one);
    add(one);
  }
  for (const auto& [one, trained] : rewritten) {
    const bool there = std::find(variants.begin(), variants.end(), trained) != variants.end();
    if (!there || !why_not(options, one).empty()) continue;
    add(one);
    plans->back().weights_of = CellKey{trained.name, setting, seed};
  }
}

std::map<std::string, std::string> data_from_json(const nlohmann::json& object, const std::string& where) {
  HS_CHECK(object.is_object(), where, ": \"data\" is not an object");
  std::map<std::string, std::string> data;
  for (const auto& [what, fingerprint] : object.items()) data[what] = json_string(fingerprint, where + ": data");
  return data;
}

}  // namespace

std::string CellPlan::directory() const { return cell_directory(key); }

std::string cell_directory(const CellKey& key) {
  std::string middle = key.setting.empty() ? "" : key.setting + "-";
  std::replace(middle.begin(), middle.end(), ' ', '-');
  return key.variant + "-" + middle + "seed" + std::to_string(key.seed);
}

std::vector<CellPlan> plan_cells(const ComparisonOptions& options, const Experiment& experiment) {
  const std::vector<Variant> chosen = chosen_variants(options);
  const auto rewritten = rewritten_variants(options, chosen);
  check_scheme_steps(options);
  std::vector<CellPlan> plans;
  for (int64_t seed = options.train.seed; seed < options.train.seed + options.seeds; ++seed) {
    for (const SweepSetting& setting : sweep_settings(options)) {
      add_cells(with_setting(options, setting), setting.name(), seed, rewritten, experiment, &plans);
    }
  }
  HS_CHECK(!plans.empty(), "none of the schemes can be trained with these options; ", chosen.front().name, ": ",
           why_not(options, chosen.front()));
  return plans;
}

std::vector<CellPlan> plan_variants(const ComparisonOptions& options, const std::vector<Variant>& variants) {
  std::vector<CellPlan> plans;
  for (int64_t seed = options.train.seed; seed < options.train.seed + options.seeds; ++seed) {
    for (const Variant& one : variants) {
      plans.push_back({.key = {one.name, "", seed}, .options = of_cell(options, one, seed)});
    }
  }
  return plans;
}

void match_time(const std::vector<Variant>& variants,
                const std::function<double(const ComparisonOptions& cell)>& seconds_per_step,
                ComparisonOptions* options) {
  // The reference is sought among all chosen variants because it may be one that is not trained.
  const std::string name = chosen_references(*options, chosen_variants(*options)).quality;
  const Variant* found = find_variant(variants, name);
  const Variant& reference = found == nullptr ? variants.front() : *found;
  const double budget =
      seconds_per_step(of_cell(*options, reference, options->train.seed)) * static_cast<double>(options->train.steps);
  for (const Variant& one : variants) {
    int64_t steps = options->train.steps;
    if (one.name != reference.name) {
      const double step = seconds_per_step(of_cell(*options, one, options->train.seed));
      steps = std::max<int64_t>(1, std::llround(budget / step));
    }
    options->scheme_steps.push_back(one.name + "=" + std::to_string(steps));
  }
}

nlohmann::json resolved_options(ComparisonOptions cell, const ModelOptions& model) {
  cell.train = resolve(cell.train);
  nlohmann::json options = to_json(fields(cell));
  options.update(option_values(model));
  return options;
}

nlohmann::json to_json(const CellPlan& plan) {
  ComparisonOptions options = plan.options;
  nlohmann::json object = {
      {"key", to_json(plan.key)}, {"scheme", options.model.attention.scheme}, {"options", to_json(fields(options))}};
  if (plan.weights_of) object["weights_of"] = to_json(*plan.weights_of);
  if (!plan.data.empty()) object["data"] = plan.data;
  return object;
}

CellPlan plan_from_json(const nlohmann::json& object, const std::string& where) {
  HS_CHECK(object.is_object() && object.contains("key") && object.contains("scheme") && object.contains("options"),
           where, ": not the plan of a comparison's cell");
  CellPlan plan{.key = key_from_json(object["key"], where), .options = {}};
  Fields list = fields(plan.options);
  from_json(list, object["options"], where);
  plan.options.model.attention.scheme = scheme_record(json_string(object, "scheme", where)).name;
  if (object.contains("weights_of")) plan.weights_of = key_from_json(object["weights_of"], where);
  if (object.contains("data")) plan.data = data_from_json(object["data"], where);
  return plan;
}

}  // namespace headshare
