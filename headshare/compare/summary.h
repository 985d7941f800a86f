// The table a comparison answers with: one row per scheme.
#pragma once

#include "headshare/compare/comparison.h"
#include "headshare/metrics/retention.h"
#include "headshare/metrics/statistics.h"
#include "headshare/models/size.h"

namespace headshare {

struct SchemeSummary {
  SchemeKind scheme = SchemeKind::kMha;
  ModelSize size;
  Summary test_loss;   // over seeds
  Summary perplexity;  // of the test part, over seeds
  std::optional<Summary> bits_per_byte = {};
  Retention prr = {};  // by perplexity: lower is better
  Retention peop = {};
  std::optional<PairedDifference> loss_against_mha = {};  // test loss minus MHA's, paired by seed
  double tokens_per_second = 0;  // training, median over cells; 0 for el_lossless, which is not trained
};

// Rows in the order the schemes first appear in `cells`. PRR needs mha among them, PEoP sha: the
// retention says why where it is undefined.
std::vector<SchemeSummary> summarise(const ComparisonOptions& options, const std::vector<Cell>& cells,
                                     int64_t vocabulary);

// Everything: rows, cells, options, environment. `environment` says on what machine and by what command.
nlohmann::json results_json(const ComparisonOptions& options, const std::vector<Cell>& cells,
                            const std::vector<SchemeSummary>& rows, const nlohmann::json& environment);

}  // namespace headshare
