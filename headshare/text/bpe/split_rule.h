// Names the rules by which byte-level BPE cuts text into words before it merges.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headshare {

// Letters, digits and marks are those of the installed PCRE2's Unicode version (PCRE2 10.42: Unicode 14); characters
// assigned later count as signs.
enum class SplitRule {
  kGpt2,    // contractions, letters, digits, other signs, each with one leading space; white space
  kNone,    // the whole text is one word
  kDigits,  // every digit is a word, and GPT-2's pattern cuts what stands between digits: StarCoder, SmolLM
  kLlama3,  // contractions in both cases, letters with one sign before them, digits by three: Llama 3, GPT-4, OLMo 2
  kQwen2,   // the same with single digits: Qwen 2 to 3
  kTekken,  // words end before a capital that follows a small letter, single digits: Mistral's Tekken
  kGpt4o,   // the same with contractions and digits by three: GPT-4o
};

inline constexpr SplitRule kSplitRules[] = {SplitRule::kGpt2,   SplitRule::kNone,  SplitRule::kDigits,
                                            SplitRule::kLlama3, SplitRule::kQwen2, SplitRule::kTekken,
                                            SplitRule::kGpt4o};

// Returns the rule's name in files of ours: "llama3".
const char* split_name(SplitRule rule);

// Returns the regular expression by which Hugging Face's tokenizer.json writes the rule in a Split; "" for the rules
// that it writes otherwise (kGpt2, kNone, kDigits).
std::string_view split_pattern(SplitRule rule);

// Returns the rule of such an expression; nothing for others.
std::optional<SplitRule> rule_of_pattern(std::string_view pattern);

// Returns the expression that finds the next word, for PCRE2; not for kNone.
std::string pcre2_pattern(SplitRule rule);

}  // namespace headshare
