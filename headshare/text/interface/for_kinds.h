// The kinds of tokenizers share this with one another; users of a tokenizer do not need it.
#pragma once

#include "headshare/text/interface/tokenizer.h"

namespace headshare {

// The format and its version, which lead every tokenizer.json of ours. A file has the first version unless it needs
// what programs of that version do not know.
inline constexpr const char* kTokenizerFormat = "headshare-tokenizer";
inline constexpr int32_t kTokenizerVersion = 1;
inline constexpr int32_t kNewestTokenizerVersion = 2;

// Every to_json() begins with this object.
nlohmann::json tokenizer_header(const Tokenizer& tokenizer);

// Throws Error for an id that decode() must refuse.
void check_token_id(int32_t id, int64_t vocabulary_size);

// Answers continues_word() for kinds whose ids do not tell where words begin.
[[noreturn]] void throw_words_unknown(const Tokenizer& tokenizer);

}  // namespace headshare
