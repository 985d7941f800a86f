#include "headshare/data/parallel/pair_options.h"

#include "headshare/base/files/placeholder.h"

namespace headshare {

Fields fields(PairOptions& options) {
  static const EnumNames<PairFormat> kFormats = {{PairFormat::kAuto, "auto"},
                                                 {PairFormat::kLines, "lines"},
                                                 {PairFormat::kTsv, "tsv"},
                                                 {PairFormat::kJsonLines, "jsonl"}};
  const double largest = 1e6;
  return {
      naming_file(field("source", &options.train.source,
                        "sentences to translate, one a line (.gz too); or a .tsv or .jsonl file with both sides",
                        {.aliases = {"source-file", "train-source"}})),
      or_empty(naming_file(field("target", &options.train.target,
                                 "their translations, line by line; empty: the source file has both sides",
                                 {.aliases = {"target-file", "train-target"}}))),
      naming_file(field("validation-source", &options.validation.source, "the same for validation",
                        {.aliases = {"valid-source"}})),
      or_empty(naming_file(field("validation-target", &options.validation.target, "the same for validation",
                                 {.aliases = {"valid-target"}}))),
      naming_file(field("test-source", &options.test.source, "the same for testing")),
      or_empty(naming_file(field("test-target", &options.test.target, "the same for testing"))),
      field("pair-fields", &options.pair_fields,
            "a file with both sides: the names of the source's and the target's field, as in de,en; TSV without names "
            "has two columns and no heading"),
      field("pair-format", &options.pair_format,
            "auto: lines for two files, else by the name of the file, which ends in .tsv or .jsonl", kFormats),
      field("max-pair-length", &options.max_pair_length,
            "training pairs with more tokens on a side, its end included, are left out; auto: none is", {.min = 2}),
      field("max-length-ratio", &options.max_length_ratio,
            "training pairs with a side so many times as long as the other are left out; auto: none is",
            {.min = 1, .max = largest}),
      field("batch-tokens", &options.batch_tokens,
            "tokens of a batch on its longer side, padding included: pairs times the longest sentence",
            {.min = 2, .max = 1 << 24, .aliases = {"max-tokens"}}),
  };
}

}  // namespace headshare
