// Families that read text have these options: what their models learn from, and how it is cut into tokens.
#pragma once

#include <optional>
#include <string>

#include "headshare/data/text/batcher.h"
#include "headshare/data/text/splits.h"
#include "headshare/tasks/teacher.h"
#include "headshare/text/train_tokenizer.h"

namespace headshare {

struct TextOptions {
  DataOptions data = {};
  TokenizerOptions tokenizer = {};
  std::string tokenizer_path = {};  // "": train one on the training text
  BatchOrder batch_order = BatchOrder::kRandom;
  std::optional<int64_t> stride = {};             // of the evaluation windows; default the context: disjoint windows
  std::optional<int64_t> evaluation_tokens = {};  // the first so many of a part; default all
  std::optional<int64_t> vocabulary = {};         // of the model; default the teacher's, else the tokenizer's
  DistillationOptions distillation = {};
};

// Lists the options of data and tokenizers.
Fields data_fields(TextOptions& options);

// Lists the options of windows.
Fields window_fields(TextOptions& options);

// Lists all of them and those of the teacher; `vocabulary` has no field here.
Fields fields(TextOptions& options);

// Returns the model's vocabulary, as far as that is known before the text is read: what is asked for; else the
// teacher's; else the one that the tokenizer will have, 256 for bytes, else what it is asked for, else 8192.
int64_t likely_vocabulary(const TextOptions& options);

// Returns the model's vocabulary. Throws Error where it has no room for the tokenizer's.
int64_t model_vocabulary(const TextOptions& options, const Tokenizer& tokenizer);

}  // namespace headshare
