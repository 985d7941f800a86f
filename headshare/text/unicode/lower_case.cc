#include "headshare/text/unicode/lower_case.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "headshare/text/unicode/utf8.h"

namespace headshare {
namespace {

constexpr int32_t kCapitalSigma = 0x3A3;
constexpr int32_t kSmallSigma = 0x3C3;
constexpr int32_t kFinalSigma = 0x3C2;
constexpr int32_t kCapitalIWithDot = 0x130;

// Tells Unicode's Case_Ignorable: by category, or by a word-break property that the list below stands for (MidLetter,
// MidNumLet, Single_Quote).
bool is_case_ignorable(int32_t code_point) {
  constexpr int32_t kInsideWords[] = {0x27,   0x2E,   0x3A,   0xB7,   0x387,  0x55F,  0x5F4,  0x2018, 0x2019,
                                      0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};
  switch (utf8proc_category(code_point)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return std::binary_search(std::begin(kInsideWords), std::end(kInsideWords), code_point);
  }
}

// Tells Unicode's Cased, for code points that are not case-ignorable: letters with case, and the signs that
// Other_Lowercase and Other_Uppercase name (ordinals, Roman numerals, letters in circles and squares).
bool is_cased(int32_t code_point) {
  constexpr int32_t kSigns[][2] = {{0xAA, 0xAA},       {0xBA, 0xBA},       {0x2160, 0x217F},  {0x24B6, 0x24E9},
                                   {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
  const utf8proc_category_t category = utf8proc_category(code_point);
  if (category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT) {
    return true;
  }
  return std::any_of(std::begin(kSigns), std::end(kSigns),
                     [&](const auto& range) { return range[0] <= code_point && code_point <= range[1]; });
}

// A capital sigma becomes final behind a cased letter and before none, case-ignorable signs left aside.
int32_t lower_sigma(std::string_view before, std::string_view after) {
  bool behind_cased = false;
  while (!before.empty()) {
    size_t start = before.size() - 1;
    while (start > 0 && (static_cast<unsigned char>(before[start]) & 0xC0) == 0x80) --start;
    size_t position = start;
    const int32_t code_point = next_code_point(before, &position);
    if (code_point < 0) break;
    if (!is_case_ignorable(code_point)) {
      behind_cased = is_cased(code_point);
      break;
    }
    before = before.substr(0, start);
  }
  if (!behind_cased) return kSmallSigma;
  for (size_t position = 0; position < after.size();) {
    const int32_t code_point = next_code_point(after, &position);
    if (code_point < 0) break;
    if (!is_case_ignorable(code_point)) return is_cased(code_point) ? kSmallSigma : kFinalSigma;
  }
  return kFinalSigma;
}

}  // namespace

void append_lower_case(std::string_view text, size_t begin, int32_t code_point, size_t end, std::string* out) {
  if (code_point < 0x80) {
    *out += static_cast<char>('A' <= code_point && code_point <= 'Z' ? code_point + 'a' - 'A' : code_point);
  } else if (code_point == kCapitalSigma) {
    append_utf8(lower_sigma(text.substr(0, begin), text.substr(end)), out);
  } else if (code_point == kCapitalIWithDot) {
    *out += "i\u0307";
  } else {
    append_utf8(utf8proc_tolower(code_point), out);
  }
}

std::string lower_case(std::string_view text) {
  std::string lower;
  lower.reserve(text.size());
  for (size_t position = 0; position < text.size();) {
    const size_t start = position;
    const int32_t code_point = next_code_point(text, &position);
    if (code_point < 0) {
      lower += text[position++];
    } else {
      append_lower_case(text, start, code_point, position, &lower);
    }
  }
  return lower;
}

bool is_word_character(int32_t code_point) {
  switch (utf8proc_category(code_point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return true;
    default:
      return code_point == '_';
  }
}

bool is_white_space(int32_t code_point) {
  if (code_point < 0x80) return (code_point >= 0x9 && code_point <= 0xD) || (code_point >= 0x1C && code_point <= 0x20);
  return code_point == 0x85 || utf8proc_category(code_point) == UTF8PROC_CATEGORY_ZS || code_point == 0x2028 ||
         code_point == 0x2029;
}

}  // namespace headshare
