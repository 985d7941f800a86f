// headshare score bleu, chrf and ter have their options, checks and output here.
#pragma once

#include <string>
#include <vector>

#include "headshare/cli/arguments/args.h"
#include "headshare/metrics/translation/bleu.h"
#include "headshare/metrics/translation/chrf.h"
#include "headshare/metrics/translation/ter.h"

namespace headshare {

struct TranslationOptions {
  BleuOptions bleu;
  ChrfOptions chrf;
  TercomOptions ter;
  bool lowercase = false;  // bleu and chrf
  bool force = false;
  bool sentence_level = false;
  int64_t confidence = 0;  // resamples
  int64_t paired_bootstrap = 0;
  int64_t paired_randomisation = 0;  // trials
  int64_t seed = 12345;
  int64_t width = 1;  // digits behind the point
};

// Lists the questions that are answered here.
const std::vector<std::string>& translation_questions();

void add_translation_options(TranslationOptions* options, Arguments* arguments);

// Throws Error for options that are not the question's, and for those that do not go together with that many systems.
// `question` may be another one: then none of these options may be given.
void check_translation_options(const Arguments& arguments, const std::string& question,
                               const TranslationOptions& options, size_t systems);

// Reads the files, scores every system and prints. Throws Error for files that do not fit together.
void score_translations(const std::string& question, const TranslationOptions& options,
                        const std::vector<std::string>& systems, const std::vector<std::string>& references, bool json);

}  // namespace headshare
