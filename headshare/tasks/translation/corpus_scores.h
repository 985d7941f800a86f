// CorpusScores are BLEU and chrF of translations, with intervals over sentences.
#pragma once

#include <string>
#include <vector>

#include "headshare/metrics/score.h"

namespace headshare {

struct CorpusScores {
  Score bleu, chrf;  // per cent, with the signatures and the intervals of sacreBLEU
  // `pseudo_values` has for each sentence the jackknife's pseudo-value of BLEU: n BLEU - (n - 1) BLEU without the
  // sentence. Their mean is BLEU but for a bias of the order of 1 / n, and differences between two systems, sentence by
  // sentence, can be resampled like those of a mean (Efron, 1982).
  std::vector<double> pseudo_values;
};

// Scores translations, with one reference for each. Throws Error for none, or for another number of them.
CorpusScores score_corpus(const std::vector<std::string>& translations, const std::vector<std::string>& references);

}  // namespace headshare
