// `headshare convert --to SCHEME` reports here on a model whose heads were made to share.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "headshare/convert/collaborative/collaborative_model.h"
#include "headshare/convert/shared_heads/shared_heads_model.h"
#include "headshare/models/size.h"

namespace headshare {

struct ConversionReport {
  std::string table;              // a line for each layer
  nlohmann::ordered_json layers;  // the same numbers and more
  AnswerChange change;
  bool stopped = false;
};

ConversionReport present(const CollaborativeHeadsReport& report);
ConversionReport present(const SharedHeadsReport& report);

// These are the scores of both models on a held-out text, as `evaluate` gives them (TextScores::object); null where not
// asked.
struct ScoredConversion {
  nlohmann::ordered_json before;
  nlohmann::ordered_json after;
};

// Prints the table with sizes, changes and scores, or one JSON object.
void print_conversion(const ConversionReport& report, const ScoredConversion& scored, const ModelSize& before,
                      const ModelSize& after, const std::string& out, bool json);

}  // namespace headshare
