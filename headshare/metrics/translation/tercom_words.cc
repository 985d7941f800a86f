#include "headshare/metrics/translation/tercom_words.h"

#include <algorithm>
#include <iterator>

#include "headshare/base/strings/valid_utf8.h"
#include "headshare/metrics/translation/western.h"
#include "headshare/text/unicode/lower_case.h"

namespace headshare {
namespace {

struct Range {
  int32_t first;
  int32_t last;
};

// These signs stand with Asian scripts, or are as wide as their characters.
constexpr Range kSigns[] = {{0x3001, 0x3002}, {0x3008, 0x3011}, {0x3014, 0x301F}, {0x30FB, 0x30FB},
                            {0xFF01, 0xFF02}, {0xFF08, 0xFF09}, {0xFF0C, 0xFF0C}, {0xFF0E, 0xFF0E},
                            {0xFF1A, 0xFF1B}, {0xFF1F, 0xFF1F}, {0xFF61, 0xFF65}};

// These characters become words, up to U+3F22 as sacreBLEU has it. Its rules for runs of kana ask for such a run from
// the beginning of the line to its end, but there a blank was put before: they never apply.
constexpr Range kCharacters[] = {{0x2E80, 0x2EFF}, {0x31C0, 0x31EF}, {0x3200, 0x4DBF},
                                 {0x4E00, 0x9FFF}, {0xF900, 0xFAFF}, {0xFE30, 0xFE4F}};

template <size_t N>
bool is_in(const Range (&ranges)[N], int32_t c) {
  return std::any_of(std::begin(ranges), std::end(ranges), [c](Range r) { return r.first <= c && c <= r.last; });
}

std::string normalize_western(std::string_view line) {
  std::string text = replace_all(replace_all(line, "\n-", ""), "\n", " ");
  text = replace_all(replace_all(text, "&quot;", "\""), "&amp;", "&");
  text = " " + replace_all(replace_all(text, "&lt;", "<"), "&gt;", ">") + " ";
  return separate_points(replace_all(separate_signs(text), "'s ", " 's "));
}

// Puts blanks around each code point that `chosen` names, or leaves it out.
template <class Chosen>
std::string change_characters(std::string_view text, bool keep, Chosen chosen) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const bool here = chosen(next_code_point(text, &at));
    if (here && !keep) continue;
    if (here) out += ' ';
    out += text.substr(begin, at - begin);
    if (here) out += ' ';
  }
  return out;
}

}  // namespace

std::string tercom_words(const TercomOptions& options, std::string_view line) {
  constexpr std::string_view kWesternSigns = ".,?:;!\"()";
  std::string text = options.case_sensitive ? std::string(line) : lower_case(line);
  if (options.normalized) text = normalize_western(text);
  if (options.normalized && options.asian_support) {
    text = change_characters(text, true, [](int32_t c) { return is_in(kCharacters, c) || is_in(kSigns, c); });
  }
  if (options.no_punctuation) {
    std::erase_if(text, [&](char c) { return kWesternSigns.find(c) != std::string_view::npos; });
    if (options.asian_support) text = change_characters(text, false, [](int32_t c) { return is_in(kSigns, c); });
  }
  return text;
}

}  // namespace headshare
