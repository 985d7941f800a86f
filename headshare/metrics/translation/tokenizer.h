// Cuts lines into words for BLEU, by sacreBLEU's tokenizers under their names there.
#pragma once

#include <string>
#include <string_view>

namespace headshare {

enum class BleuTokenizer { k13a, kIntl, kChar, kNone, kZh };

// Returns "13a", "intl", "char", "none", "zh", as signatures say it.
std::string tokenizer_name(BleuTokenizer tokenizer);

// Returns `line` (valid UTF-8) with white space between its words; split_words() gives them.
std::string tokenize(BleuTokenizer tokenizer, std::string_view line);

// Follows mteval-v13a.pl's rules for Western languages.
std::string tokenize_13a(std::string_view line);
// Follows mteval-v14.pl's rules: punctuation and symbols of all of Unicode are set apart, but between digits.
std::string tokenize_intl(std::string_view line);
// Sets Chinese characters apart one by one, and all else as 13a does without its entities.
std::string tokenize_zh(std::string_view line);

}  // namespace headshare
