#include "headshare/compare/grid.h"

#include <algorithm>
#include <cmath>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"

namespace headshare {
namespace {

// The options of one model: scheme, seed and, where time is matched, its own number of steps.
ComparisonOptions of_cell(ComparisonOptions options, const std::string& scheme, int64_t seed) {
  options.language.model.attention.scheme = scheme;
  options.train.seed = seed;
  for (const std::string& item : options.scheme_steps) {
    const std::string name = scheme + "=";
    if (!item.starts_with(name)) continue;
    int64_t steps = 0;
    field("scheme-steps", &steps, "", {.min = 1}).parse(item.substr(name.size()));
    options.train.steps = steps;
  }
  return options;
}

// Steps that were matched to time are those of the schemes that were there then.
void check_steps_known(const ComparisonOptions& options, const std::string& scheme) {
  const std::string name = scheme + "=";
  const auto names = [&](const std::string& item) { return item.starts_with(name); };
  HS_CHECK(options.scheme_steps.empty() || std::any_of(options.scheme_steps.begin(), options.scheme_steps.end(), names),
           scheme, " was not there when --match time gave each scheme its steps; compare it in another --out");
}

bool contains(const std::vector<std::string>& schemes, const std::string& scheme) {
  return std::find(schemes.begin(), schemes.end(), scheme) != schemes.end();
}

}  // namespace

std::string CellPlan::directory() const { return cell_directory(key); }

std::string cell_directory(const CellKey& key) {
  std::string middle = key.setting.empty() ? "" : key.setting + "-";
  std::replace(middle.begin(), middle.end(), ' ', '-');
  return key.scheme + "-" + middle + "seed" + std::to_string(key.seed);
}

std::vector<std::string> trainable_schemes(const ComparisonOptions& options) {
  std::vector<std::string> schemes = chosen_schemes(options);
  std::erase_if(schemes,
                [&](const std::string& scheme) { return !is_trained(scheme) || !why_not(options, scheme).empty(); });
  return schemes;
}

std::vector<CellPlan> plan_cells(const ComparisonOptions& options, const Experiment& experiment) {
  const std::vector<std::string> chosen = chosen_schemes(options);
  std::vector<std::string> rewritten;  // another scheme's weights, computed with in another way
  for (const std::string& scheme : chosen) {
    const std::string& trained = scheme_record(scheme).weights_of;
    if (trained.empty()) continue;
    HS_CHECK(contains(chosen, trained), scheme, " is ", trained,
             " rewritten for decoding and is not trained by itself; ", "add ", trained, " to --schemes");
    rewritten.push_back(scheme);
  }
  check_scheme_steps(options);
  std::vector<CellPlan> plans;
  for (int64_t i = 0; i < options.seeds; ++i) {
    const int64_t seed = options.train.seed + i;
    for (const SweepSetting& setting : sweep_settings(options)) {
      const ComparisonOptions set = with_setting(options, setting);
      const std::vector<std::string> schemes = trainable_schemes(set);
      for (const std::string& scheme : schemes) check_steps_known(set, scheme);
      const auto key = [&](const std::string& scheme) { return CellKey{scheme, setting.name(), seed}; };
      const auto add = [&](const std::string& scheme) {
        plans.push_back({.key = key(scheme), .options = of_cell(set, scheme, seed)});
        if (options.match == Match::kParameters) match_parameters(experiment, schemes, &plans.back().options);
      };
      for (const std::string& scheme : schemes) add(scheme);
      for (const std::string& scheme : rewritten) {
        const std::string& trained = scheme_record(scheme).weights_of;
        if (!contains(schemes, trained) || !why_not(set, scheme).empty()) continue;
        add(scheme);
        plans.back().weights_of = key(trained);
      }
    }
  }
  HS_CHECK(!plans.empty(), "none of the schemes can be trained with these options");
  return plans;
}

std::vector<CellPlan> plan_fine_tuning(const ComparisonOptions& options, const std::vector<std::string>& schemes) {
  std::vector<CellPlan> plans;
  for (int64_t seed = options.train.seed; seed < options.train.seed + options.seeds; ++seed) {
    for (const std::string& scheme : schemes) {
      plans.push_back({.key = {scheme, "", seed}, .options = of_cell(options, scheme, seed)});
    }
  }
  return plans;
}

void match_parameters(const Experiment& experiment, const std::vector<std::string>& schemes, ComparisonOptions* cell) {
  const auto total = [&](const std::string& scheme, std::optional<int64_t> width) {
    ComparisonOptions options = *cell;
    options.language.model.attention.scheme = scheme;
    if (width) options.language.model.feed_forward_width = width;
    return size_of(experiment.model(options)).total_parameters;
  };
  int64_t largest = 0;
  for (const std::string& scheme : schemes) largest = std::max(largest, total(scheme, {}));
  const std::string own = cell->language.model.attention.scheme;
  const int64_t width = *shared_options(experiment.model(*cell)).feed_forward_width;
  // Parameters grow linearly with the width.
  const int64_t narrow = total(own, width);
  const double per_unit = static_cast<double>(total(own, width + 1) - narrow);
  cell->language.model.feed_forward_width =
      width + static_cast<int64_t>(std::llround(static_cast<double>(largest - narrow) / per_unit));
}

void match_time(const std::vector<std::string>& schemes,
                const std::function<double(const ComparisonOptions& cell)>& seconds_per_step,
                ComparisonOptions* options) {
  const std::string reference = contains(schemes, "mha") ? "mha" : schemes.front();
  const double budget =
      seconds_per_step(of_cell(*options, reference, options->train.seed)) * static_cast<double>(options->train.steps);
  for (const std::string& scheme : schemes) {
    int64_t steps = options->train.steps;
    if (scheme != reference) {
      const double step = seconds_per_step(of_cell(*options, scheme, options->train.seed));
      steps = std::max<int64_t>(1, std::llround(budget / step));
    }
    options->scheme_steps.push_back(scheme + "=" + std::to_string(steps));
  }
}

nlohmann::json to_json(const CellPlan& plan) {
  ComparisonOptions options = plan.options;
  nlohmann::json object = {{"key", to_json(plan.key)}, {"options", to_json(fields(options))}};
  if (plan.weights_of) object["weights_of"] = to_json(*plan.weights_of);
  return object;
}

CellPlan plan_from_json(const nlohmann::json& object, const std::string& where) {
  HS_CHECK(object.is_object() && object.contains("key") && object.contains("options"), where,
           ": not the plan of a comparison's cell");
  CellPlan plan{.key = key_from_json(object["key"], where), .options = {}};
  Fields list = fields(plan.options);
  from_json(list, object["options"], where);
  plan.options.language.model.attention.scheme = scheme_record(plan.key.scheme).name;
  if (object.contains("weights_of")) plan.weights_of = key_from_json(object["weights_of"], where);
  return plan;
}

}  // namespace headshare
