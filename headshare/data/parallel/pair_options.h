// These options say which sentence pairs a run learns from, and how they are read and put into batches.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headshare/base/options/field.h"
#include "headshare/data/text/text_source.h"

namespace headshare {

enum class PairFormat {
  kAuto,       // two files: kLines; one: by its name, which ends in .tsv or .jsonl, each also with .gz
  kLines,      // two files, a sentence a line: line n of one is the translation of line n of the other
  kTsv,        // one file, two columns; with pair_fields, the columns of these names in its heading
  kJsonLines,  // one file, a JSON object a line with two texts
};

// These are the files of one part of the data. `target` is empty where `source` holds both sides.
struct PairFiles {
  std::string source;
  std::string target;
  const char* part = "";  // the beginning of its options: "", "validation-", "test-"

  bool given() const { return !source.empty() || !target.empty(); }
};

// These limits say which pairs are left out of the training data. Lengths are in tokens.
struct PairLimits {
  std::optional<int64_t> longest = {};    // a side with its end-of-text token
  std::optional<double> most_ratio = {};  // the longer side to the shorter one, both without it
  bool keep_empty = false;                // pairs of which a side has no tokens
};

struct PairOptions {
  PairFiles train = {};
  PairFiles validation = {.source = {}, .target = {}, .part = "validation-"};
  PairFiles test = {.source = {}, .target = {}, .part = "test-"};
  std::vector<std::string> pair_fields = {};  // of the source, of the target
  PairFormat pair_format = PairFormat::kAuto;
  std::optional<int64_t> max_pair_length = 256;
  std::optional<double> max_length_ratio = 9;
  int64_t batch_tokens = 4096;
  // This has no field here: a run has one policy for all of its texts. kAuto and kKeep are taken as kRefuse.
  InvalidUtf8 invalid_utf8 = InvalidUtf8::kRefuse;

  PairLimits limits() const { return {.longest = max_pair_length, .most_ratio = max_length_ratio}; }
};

Fields fields(PairOptions& options);

}  // namespace headshare
