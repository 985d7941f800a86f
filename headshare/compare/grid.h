// The grid of a comparison has a cell for every variant x setting x seed, each with its own options.
#pragma once

#include <functional>
#include <map>

#include "headshare/compare/open_experiment.h"
#include "headshare/compare/variants.h"

namespace headshare {

// A plan has fingerprints under these names, beside those of tasks.
inline constexpr const char* kWholeData = "";
inline constexpr const char* kEncoderWeights = "--encoders";
inline constexpr const char* kTeacherWeights = "--teacher";

struct CellPlan {
  CellKey key;
  ComparisonOptions options;               // of this cell: variant, seed, setting and matching applied
  std::optional<CellKey> weights_of = {};  // el_lossless: the mha cell whose weights it has
  // These are fingerprints of the data that the plan was made with (by task, or kWholeData without tasks), and of the
  // weights that the cell starts from or learns from. A cell that reads others is refused. Empty where no file is read.
  std::map<std::string, std::string> data = {};

  std::string directory() const;  // "mha-seed0", "mha-learning-rate=0.001-seed0"
};

// Returns the name of a cell's directory.
std::string cell_directory(const CellKey& key);

// Plans the cells: seeds outside, then settings, then variants, el_lossless last among its own, so that an interrupted
// comparison has whole rows with fewer seeds. Variants that cannot be trained with a setting are left out. Throws Error
// when nothing is left, or el_lossless stands without mha.
std::vector<CellPlan> plan_cells(const ComparisonOptions& options, const Experiment& experiment);

// Plans a cell for every one of `variants` x seed, without settings.
std::vector<CellPlan> plan_variants(const ComparisonOptions& options, const std::vector<Variant>& variants);

// Fills options->scheme_steps: the other variants get as many steps as fit into the time that the reference (or,
// without it, the first variant) takes for options->train.steps. `seconds_per_step` measures one variant.
void match_time(const std::vector<Variant>& variants,
                const std::function<double(const ComparisonOptions& cell)>& seconds_per_step,
                ComparisonOptions* options);

// Returns every option of a cell with the model's defaults filled in, so that the same model can be trained again once
// a default has changed.
nlohmann::json resolved_options(ComparisonOptions cell, const ModelOptions& model);

nlohmann::json to_json(const CellPlan& plan);
CellPlan plan_from_json(const nlohmann::json& object, const std::string& where);

}  // namespace headshare
