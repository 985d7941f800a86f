// Makes the table of token embeddings: a row for each variant, with what its embedding takes and keeps.
#pragma once

#include <string>
#include <vector>

#include "headshare/report/statistics/variant_rows.h"

namespace headshare {

struct EmbeddingColumn {
  std::string heading;                             // "embedding parameters"
  std::vector<std::string> texts = {};             // of each row; "-" where there is none
  std::vector<std::optional<double>> values = {};  // to sort by
  bool busy = false;                               // speeds of a busy machine
};

// Returns no columns where embeddings are not compared. Memory and speed stand here again, beside what they buy.
std::vector<EmbeddingColumn> embedding_columns(const Results& results, const std::vector<VariantRow>& rows);

}  // namespace headshare
