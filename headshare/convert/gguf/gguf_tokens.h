// The tokens of a GGUF file.
#pragma once

#include "headshare/convert/foreign/model_to_write.h"
#include "headshare/convert/gguf/gguf_file.h"

namespace headshare {

// Our own files are known by this key; other programs do not read it.
inline constexpr const char* kGgufMark = "headshare.format_version";

// Adds the values tokenizer.ggml.*: a byte-level BPE by its tokens, its merges and the rule by which it cuts text,
// bytes as one without merges, a BPE over characters by a score for each token (merge_scores.h), none where the model
// has no tokenizer. Tokens that only the model knows get names that no text has. Throws Error for other kinds, and for
// a BPE that gives other tokens than engines would.
void add_gguf_tokens(const ModelToWrite& model, GgufFile* file);

}  // namespace headshare
