#include "headshare/text/bpe/split_rule.h"

#include "headshare/base/error.h"

namespace headshare {
namespace {

#define CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"
// A word of GPT-4o and Tekken: capitals, then small letters; letters without case and marks are both.
#define CAPITALS R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define SMALL R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define SIGN_BEFORE R"([^\r\n\p{L}\p{N}]?)"
#define WHITE R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"

struct RuleRow {
  SplitRule rule;
  const char* name;
  bool in_files;  // tokenizer.json writes the rule as this expression
  std::string_view pattern;
};

// Between two digits GPT-2's pattern sees a text of its own, so white space before a digit is what ends a text.
constexpr RuleRow kRows[] = {
    {SplitRule::kGpt2, "gpt2", false, CONTRACTIONS R"(| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {SplitRule::kNone, "none", false, ""},
    {SplitRule::kDigits, "digits", false, CONTRACTIONS R"(| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+)"},
    {SplitRule::kLlama3, "llama3", true,
     "(?i:" CONTRACTIONS ")|" SIGN_BEFORE R"(\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" WHITE},
    {SplitRule::kQwen2, "qwen2", true,
     "(?i:" CONTRACTIONS ")|" SIGN_BEFORE R"(\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)" WHITE},
    {SplitRule::kTekken, "tekken", true,
     SIGN_BEFORE CAPITALS "*" SMALL "+|" SIGN_BEFORE CAPITALS "+" SMALL R"(*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" WHITE},
    {SplitRule::kGpt4o, "gpt4o", true,
     SIGN_BEFORE CAPITALS "*" SMALL "+(?i:" CONTRACTIONS ")?|" SIGN_BEFORE CAPITALS "+" SMALL "*(?i:" CONTRACTIONS
                          R"()?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*)" WHITE}};
#undef WHITE
#undef SIGN_BEFORE
#undef SMALL
#undef CAPITALS
#undef CONTRACTIONS

// \s is written out as Unicode's White_Space: PCRE2's own \s has U+180E besides, which the published tokenizers count
// as a sign.
constexpr std::string_view kSpace =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

const RuleRow& row_of(SplitRule rule) {
  for (const RuleRow& row : kRows) {
    if (row.rule == rule) return row;
  }
  throw Error("unknown rule of splitting text");
}

}  // namespace

const char* split_name(SplitRule rule) { return row_of(rule).name; }

std::string_view split_pattern(SplitRule rule) { return row_of(rule).in_files ? row_of(rule).pattern : ""; }

std::optional<SplitRule> rule_of_pattern(std::string_view pattern) {
  for (const RuleRow& row : kRows) {
    if (row.in_files && row.pattern == pattern) return row.rule;
  }
  return std::nullopt;
}

std::string pcre2_pattern(SplitRule rule) {
  const std::string_view pattern = row_of(rule).pattern;
  std::string written;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = pattern[i] == '\\' ? pattern[i + 1] : '\0';
    if (next == 's' || next == 'S') {
      // No class of the table has \S in it.
      written += in_class ? std::string(kSpace) : join_text(next == 's' ? "[" : "[^", kSpace, "]");
      ++i;
      continue;
    }
    if (pattern[i] == '[') in_class = true;
    if (pattern[i] == ']') in_class = false;
    written += pattern[i];
  }
  return written;
}

}  // namespace headshare
