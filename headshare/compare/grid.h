// The cells of a comparison: every variant x setting x seed, with its own options.
#pragma once

#include <functional>
#include <map>

#include "headshare/compare/open_experiment.h"
#include "headshare/compare/variants.h"

namespace headshare {

struct CellPlan {
  CellKey key;
  ComparisonOptions options;               // of this cell: variant, seed, setting and matching applied
  std::optional<CellKey> weights_of = {};  // el_lossless: the mha cell whose weights it has

  std::string directory() const;  // "mha-seed0", "mha-learning-rate=0.001-seed0"
};

// What a cell's directory is called.
std::string cell_directory(const CellKey& key);

// Seeds outside, then settings, then variants, el_lossless last among its own: an interrupted comparison
// has whole rows with fewer seeds. Variants that cannot be trained with a setting are left out.
// Throws Error when nothing is left, or el_lossless stands without mha.
std::vector<CellPlan> plan_cells(const ComparisonOptions& options, const Experiment& experiment);

// The cells of every one of `variants` x seed, without settings.
std::vector<CellPlan> plan_variants(const ComparisonOptions& options, const std::vector<Variant>& variants);

// Fills options->scheme_steps: what the reference (or, without it, the first variant) does in options->train.steps,
// the others do in the same time. `seconds_per_step` measures one variant.
void match_time(const std::vector<Variant>& variants,
                const std::function<double(const ComparisonOptions& cell)>& seconds_per_step,
                ComparisonOptions* options);

// Every option of a cell with the model's defaults filled in: what trains the same model again once a default has
// changed.
nlohmann::json resolved_options(ComparisonOptions cell, const ModelOptions& model);

nlohmann::json to_json(const CellPlan& plan);
CellPlan plan_from_json(const nlohmann::json& object, const std::string& where);

}  // namespace headshare
