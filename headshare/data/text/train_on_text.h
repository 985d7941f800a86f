// This header trains a tokenizer on files.
#pragma once

#include <memory>

#include "headshare/data/text/data_options.h"
#include "headshare/data/text/token_cache.h"
#include "headshare/text/train_tokenizer.h"

namespace headshare {

// Trains a tokenizer on all of `data.text`, which is read as training reads it. Throws Error as train_tokenizer() does,
// where no text is named, and for files that are no text; also for text that can be read only once (standard input),
// unless the tokenizer is all that is made of it.
enum class TextIsFor { kTokenizer, kModelToo };
std::unique_ptr<Tokenizer> train_on_text(const TokenizerOptions& options, const DataOptions& data,
                                         const Progress& progress = {}, TextIsFor use = TextIsFor::kModelToo);

}  // namespace headshare
