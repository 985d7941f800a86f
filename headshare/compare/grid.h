// The cells of a comparison: every scheme x setting x seed, with its own options.
#pragma once

#include <functional>
#include <map>

#include "headshare/compare/experiment.h"

namespace headshare {

struct CellPlan {
  CellKey key;
  ComparisonOptions options;               // of this cell: scheme, seed, setting and matching applied
  std::optional<CellKey> weights_of = {};  // el_lossless: the mha cell whose weights it has

  std::string directory() const;  // "mha-seed0", "mha-learning-rate=0.001-seed0"
};

// What a cell's directory is called.
std::string cell_directory(const CellKey& key);

// Seeds outside, then settings, then schemes, el_lossless last among its own: an interrupted comparison
// has whole rows with fewer seeds. Schemes that cannot be trained with a setting are left out.
// Throws Error when nothing is left, or el_lossless stands without mha.
std::vector<CellPlan> plan_cells(const ComparisonOptions& options, const Experiment& experiment);

// Those of a comparison of fine-tuned encoders: every one of `schemes` x seed.
std::vector<CellPlan> plan_fine_tuning(const ComparisonOptions& options, const std::vector<std::string>& schemes);

// Widens the feed-forward part of `cell` until its total parameters are nearest to the largest total
// among `schemes` with these options.
void match_parameters(const Experiment& experiment, const std::vector<std::string>& schemes, ComparisonOptions* cell);

// Fills options->scheme_steps: what mha (or, without it, the first scheme) does in options->train.steps,
// the others do in the same time. `seconds_per_step` measures one scheme.
void match_time(const std::vector<std::string>& schemes,
                const std::function<double(const ComparisonOptions& cell)>& seconds_per_step,
                ComparisonOptions* options);

// The schemes that can be trained with these options, el_lossless left out.
std::vector<std::string> trainable_schemes(const ComparisonOptions& options);

nlohmann::json to_json(const CellPlan& plan);
CellPlan plan_from_json(const nlohmann::json& object, const std::string& where);

}  // namespace headshare
