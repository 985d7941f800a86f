// An analysis tells how redundant the heads of a trained model are, and what each conversion would cost and save.
#pragma once

#include <string>
#include <vector>

#include "headshare/convert/collaborative/decomposition.h"
#include "headshare/convert/collaborative/model_change.h"
#include "headshare/report/analysis/head_analysis.h"

namespace headshare {

struct AnalysisOptions {
  DecompositionOptions decomposition = {.iterations = 8};
  std::vector<int64_t> widths = {};  // key widths to try; empty: parts of the full one
  Tensor sample = {};                // ids int64 [N, T] of a sample text; undefined: weights alone count
  int64_t map_tokens = 2048;         // compare maps and outputs of about so many of its tokens
};

// `source` is in evaluation mode. Where queries and keys are normed, its scores are no product of weights: spectra and
// similarities are those of scores on the sample then, and missing without one; conversions have sizes and times, and
// no errors. Fills everything of the result but its model and text. Where `observer` answers false it throws
// Interrupted. Throws Error, naming the layer, for weights that are not finite, schemes that have no query and key maps
// for each head, models with a single head, and impossible widths.
HeadAnalysis analyze_heads(const Decoder& source, const AnalysisOptions& options, const ConversionObserver& observer);
HeadAnalysis analyze_heads(const Encoder& source, const AnalysisOptions& options, const ConversionObserver& observer);
// The same by weights alone: there is no sample.
HeadAnalysis analyze_heads(const VisionTransformer& source, const AnalysisOptions& options,
                           const ConversionObserver& observer);

}  // namespace headshare
