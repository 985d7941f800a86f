// Cuts lines and words as Python's str methods do. All texts are valid UTF-8.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace headshare {

std::string_view strip_right(std::string_view text);  // str.rstrip()
std::string_view strip(std::string_view text);        // str.strip()

// Splits as str.split() does: views into `text`.
std::vector<std::string_view> split_words(std::string_view text);

// Returns the code points of `text`, which is valid UTF-8.
std::vector<int32_t> code_points_of(std::string_view text);

// Numbers words from 0 in the order in which they come.
class WordNumbers {
 public:
  uint32_t number(std::string_view word);
  std::vector<uint32_t> numbers(std::string_view text);  // of split_words(text)

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return std::hash<std::string_view>{}(word); }
  };
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> numbers_;
};

}  // namespace headshare
