#include "headshare/compare/check_comparison.h"

#include <algorithm>
#include <optional>

#include "headshare/base/error.h"
#include "headshare/compare/embeddings.h"
#include "headshare/compare/method.h"
#include "headshare/compare/variants.h"
#include "headshare/metrics/statistics.h"
#include "headshare/tasks/idle_options.h"

namespace headshare {
namespace {

void check_seeds_to_add(const ComparisonOptions& options) {
  HS_CHECK(options.seeds >= static_cast<int64_t>(kFewestToJudge), "--until-decided judges differences, which takes ",
           kFewestToJudge, " seeds to begin with, not --seeds ", options.seeds);
  HS_CHECK(options.max_seeds >= options.seeds, "--max-seeds ", options.max_seeds, " is less than the ", options.seeds,
           " seeds that the comparison begins with (--seeds); ask for more, or leave --until-decided out");
}

// Throws Error when no variant can be trained with a setting of the sweep.
void check_setting(const ComparisonOptions& options) {
  check_schedule(options.train.schedule, options.train.steps);
  const std::vector<Variant> variants = chosen_variants(options);
  const bool any =
      std::any_of(variants.begin(), variants.end(), [&](const Variant& one) { return why_not(options, one).empty(); });
  HS_CHECK(any, "no scheme can be trained with these options; ", variants.front().name, ": ",
           why_not(options, variants.front()));
}

// Returns the options of every model that is compared, each with its variant and setting.
std::vector<ComparisonOptions> options_of_models(const ComparisonOptions& options) {
  std::vector<ComparisonOptions> models;
  for (const SweepSetting& setting : sweep_settings(options)) {
    const ComparisonOptions set = with_setting(options, setting);
    for (const Variant& one : chosen_variants(set)) models.push_back(with_variant(set, one));
  }
  return models;
}

}  // namespace

IdleOptions idle_options(const ComparisonOptions& options) {
  std::optional<IdleOptions> idle;
  for (const ComparisonOptions& one : options_of_models(options)) {
    const IdleOptions more = idle_options(one, one.train);
    if (!idle) idle = more;
    std::erase_if(*idle, [&](const IdleOption& before) {
      return std::none_of(more.begin(), more.end(), [&](const IdleOption& now) { return now.name == before.name; });
    });
  }
  if (options.until_decided == 0) idle->push_back({"max-seeds", "is about --until-decided, which is not given"});
  return *idle;
}

void check_comparison(const ComparisonOptions& options) {
  check_embeddings(options);
  const ComparisonOptions one =
      options.embeddings.empty() ? options : with_variant(options, chosen_variants(options).front());
  const std::vector<ComparisonOptions> models = options_of_models(options);
  check_task(one, preset_options(options.task, options.preset, options), {models.begin(), models.end()});
  comparison_method(options).check(options);
  check_scheme_steps(options);
  if (options.until_decided > 0) check_seeds_to_add(options);
  for (const SweepSetting& setting : sweep_settings(options)) check_setting(with_setting(options, setting));
}

}  // namespace headshare
