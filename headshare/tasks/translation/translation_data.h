// TranslationData has the pairs of a run as tokens: read once, shared by every model that is compared on them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headshare/data/parallel/pair_data.h"
#include "headshare/models/checkpoint.h"
#include "headshare/tasks/translation/translation_options.h"
#include "headshare/train/task.h"

namespace headshare {

struct TranslationPart {
  std::shared_ptr<const PairData> pairs = std::make_shared<PairData>();
  // `sources` and `references` are set for the parts that are translated, as they were read: every pair of the files,
  // in their order, also those that `pairs` leaves out.
  std::vector<std::string> sources = {}, references = {};

  std::string fingerprint() const;  // of the pairs and of these texts; "" of no pairs
};

struct TranslationData {
  TokenizerPair tokenizers;
  TranslationPart train = {}, validation = {}, test = {};

  const TranslationPart& part(Part part) const { return part == Part::kValidation ? validation : test; }

  std::string fingerprint() const;  // of all parts as models read them
};

// Pairs that are judged are judged whole: the loss leaves out only pairs that are longer than the model's positions
// (`longest`; a notice begins with `what`), and translations leave out none. Empty where no files are given.
TranslationPart judged_part(const char* what, const PairFiles& files, const PairOptions& options,
                            const TokenizerPair& tokenizers, std::optional<int64_t> longest);

// Loads tokenizers or trains them on the training pairs, and reads all parts. Throws Error for what the readers refuse,
// and where no training pair is left.
TranslationData open_translation_data(const TaskOptions& options, const Progress& progress);

}  // namespace headshare
