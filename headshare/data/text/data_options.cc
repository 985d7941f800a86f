#include "headshare/data/text/data_options.h"

#include "headshare/base/files/placeholder.h"

namespace headshare {

Fields fields(DataOptions& options) {
  static const EnumNames<InvalidUtf8> kPolicies = {{InvalidUtf8::kAuto, "auto"},
                                                   {InvalidUtf8::kRefuse, "refuse"},
                                                   {InvalidUtf8::kReplace, "replace"},
                                                   {InvalidUtf8::kKeep, "keep"}};
  // The fraction is below 1: something must be left to train on.
  const double most = 0.9;
  return {
      naming_path(field("text", &options.text,
                        "training text: files (.jsonl and .gz too), directories, or - for standard input",
                        {.aliases = {"train-file", "train-text"}})),
      naming_path(field("validation-text", &options.validation_text,
                        "validation text; instead of a part of the training text",
                        {.aliases = {"validation-file", "eval-file", "valid-text", "dev-text"}})),
      naming_path(field("test-text", &options.test_text, "test text; instead of a part of the training text",
                        {.aliases = {"test-file"}})),
      field("validation-fraction", &options.validation_fraction,
            "part of the training text held out for validation: follows the training part",
            {.min = 0, .max = most, .aliases = {"validation-split", "val-fraction"}}),
      field("test-fraction", &options.test_fraction,
            "part of the training text held out for testing: the last part of the text",
            {.min = 0, .max = most, .aliases = {"test-split"}}),
      field("jsonl-field", &options.jsonl_field, "the key that holds the text of a JSONL record",
            {.aliases = {"text-column", "text-column-name", "text-field"}}),
      field("invalid-utf8", &options.invalid_utf8,
            "text that is not UTF-8: refuse it, replace the bad bytes by U+FFFD, or keep them; auto keeps them for "
            "byte tokenizers and refuses otherwise",
            kPolicies),
      field("allow-binary", &options.allow_binary, "accept NUL bytes in the text; byte tokenizers always do"),
      field("separate-documents", &options.separate_documents,
            "put the end-of-text token, or else [SEP], if the vocabulary has one, between files and JSONL records; if "
            "the tokenizer's files name a token that begins texts, also put it before each document"),
      or_empty(naming_directory(
          field("cache-dir", &options.cache_directory,
                "where tokenised text is kept; empty: $HEADSHARE_CACHE, else $XDG_CACHE_HOME/headshare, else "
                "~/.cache/headshare"))),
  };
}

}  // namespace headshare
