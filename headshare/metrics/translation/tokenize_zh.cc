#include <algorithm>
#include <iterator>

#include "headshare/base/strings/valid_utf8.h"
#include "headshare/metrics/translation/tokenizer.h"
#include "headshare/metrics/translation/western.h"
#include "headshare/metrics/translation/words.h"

namespace headshare {
namespace {

// These are sacreBLEU's blocks. Two of its ranges are meant to be U+20000..U+2A6D6 and U+2F800..U+2FA1D, but are
// written as texts of two characters, so that they compare as U+2001..U+2A6D and U+2F81..U+2FA1. Published scores are
// made so.
bool is_chinese(int32_t c) {
  constexpr int32_t kBlocks[][2] = {{0x2001, 0x2A6D}, {0x2E80, 0x2EFF}, {0x2F00, 0x2FDF}, {0x2FF0, 0x303F},
                                    {0x3100, 0x312F}, {0x31A0, 0x31BF}, {0x31C0, 0x31EF}, {0x3200, 0x33FF},
                                    {0x3400, 0x4DB5}, {0x4E00, 0x9FBB}, {0xF900, 0xFA2D}, {0xFA30, 0xFA6A},
                                    {0xFA70, 0xFAD9}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF}};
  return std::any_of(std::begin(kBlocks), std::end(kBlocks),
                     [c](const auto& block) { return block[0] <= c && c <= block[1]; });
}

}  // namespace

std::string tokenize_zh(std::string_view line) {
  line = strip(line);
  std::string out;
  for (size_t at = 0; at < line.size();) {
    const size_t begin = at;
    const bool chinese = is_chinese(next_code_point(line, &at));
    if (chinese) out += ' ';
    out += line.substr(begin, at - begin);
    if (chinese) out += ' ';
  }
  return separate_points(separate_signs(out));
}

}  // namespace headshare
