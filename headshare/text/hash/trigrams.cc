#include "headshare/text/hash/trigrams.h"

#include <algorithm>
#include <string>

#include "headshare/base/error.h"
#include "headshare/text/hash/digest.h"

namespace headshare {

std::vector<int32_t> word_trigrams(std::string_view word) {
  std::string text = " ";
  text += word.substr(0, kTrigramBytes);
  text += ' ';
  const auto byte = [&](size_t at) { return static_cast<int32_t>(static_cast<unsigned char>(text[at])); };
  std::vector<int32_t> trigrams;
  for (size_t i = 0; i + 2 < text.size(); ++i) trigrams.push_back(byte(i) | byte(i + 1) << 8 | byte(i + 2) << 16);
  std::sort(trigrams.begin(), trigrams.end());
  trigrams.erase(std::unique(trigrams.begin(), trigrams.end()), trigrams.end());
  return trigrams;
}

std::vector<int64_t> trigram_rows(int32_t trigram, int64_t count, int64_t rows) {
  HS_DCHECK(count <= rows);
  std::vector<int64_t> picked;
  for (int64_t k = 0; k < count; ++k) {
    for (int64_t j = 0;; ++j) {
      const std::string text = std::to_string(trigram) + '_' + std::to_string(k) + '_' + std::to_string(j);
      const auto row = static_cast<int64_t>(remainder(md5(text), static_cast<uint64_t>(rows)));
      const auto place = std::lower_bound(picked.begin(), picked.end(), row);
      if (place != picked.end() && *place == row) continue;
      picked.insert(place, row);
      break;
    }
  }
  return picked;
}

}  // namespace headshare
