#include <utf8proc.h>

#include <array>

#include "headshare/metrics/translation/tokenizer.h"
#include "headshare/metrics/translation/words.h"
#include "headshare/text/unicode/utf8.h"

namespace headshare {
namespace {

enum class Kind : uint8_t { kOther, kNumber, kPunctuation, kSymbol };

Kind find_kind(int32_t code_point) {
  const utf8proc_category_t category = utf8proc_category(code_point);
  if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) return Kind::kNumber;
  if (category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO) return Kind::kPunctuation;
  if (category >= UTF8PROC_CATEGORY_SM && category <= UTF8PROC_CATEGORY_SO) return Kind::kSymbol;
  return Kind::kOther;
}

Kind kind_of(int32_t code_point) {
  static const std::array<Kind, 128> ascii = [] {
    std::array<Kind, 128> kinds{};
    for (int32_t c = 0; c < 128; ++c) kinds[static_cast<size_t>(c)] = find_kind(c);
    return kinds;
  }();
  return code_point < 128 ? ascii[static_cast<size_t>(code_point)] : find_kind(code_point);
}

using Points = std::vector<int32_t>;

// Each punctuation mark that comes behind no number gets blanks around it.
Points separate_behind_no_number(const Points& in) {
  Points out;
  out.reserve(2 * in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    out.push_back(in[i]);
    if (i + 1 == in.size() || kind_of(in[i]) == Kind::kNumber || kind_of(in[i + 1]) != Kind::kPunctuation) continue;
    out.insert(out.end(), {' ', in[++i], ' '});
  }
  return out;
}

// Each punctuation mark that comes before no number gets blanks around it.
Points separate_before_no_number(const Points& in) {
  Points out;
  out.reserve(2 * in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    if (i + 1 == in.size() || kind_of(in[i]) != Kind::kPunctuation || kind_of(in[i + 1]) == Kind::kNumber) {
      out.push_back(in[i]);
      continue;
    }
    out.insert(out.end(), {' ', in[i], ' ', in[i + 1]});
    ++i;
  }
  return out;
}

}  // namespace

std::string tokenize_intl(std::string_view line) {
  const Points points = separate_before_no_number(separate_behind_no_number(code_points_of(line)));
  std::string out;
  out.reserve(2 * points.size());
  for (const int32_t point : points) {
    const bool symbol = kind_of(point) == Kind::kSymbol;
    if (symbol) out += ' ';
    append_utf8(point, &out);
    if (symbol) out += ' ';
  }
  return out;
}

}  // namespace headshare
