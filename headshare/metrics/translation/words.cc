#include "headshare/metrics/translation/words.h"

#include "headshare/base/strings/valid_utf8.h"
#include "headshare/text/unicode/lower_case.h"

namespace headshare {
namespace {

// Returns how many bytes of white space begin at `at`; 0 where none does.
size_t space_bytes(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x80) return is_white_space(byte) ? 1 : 0;
  if (byte != 0xC2 && (byte < 0xE1 || byte > 0xE3)) return 0;  // no other byte begins a wide blank
  size_t end = at;
  return is_white_space(next_code_point(text, &end)) ? end - at : 0;
}

}  // namespace

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    size_t last = text.size() - 1;
    while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xC0) == 0x80) --last;
    if (space_bytes(text, last) == 0) break;
    text = text.substr(0, last);
  }
  return text;
}

std::string_view strip(std::string_view text) {
  text = strip_right(text);
  while (!text.empty()) {
    const size_t bytes = space_bytes(text, 0);
    if (bytes == 0) break;
    text.remove_prefix(bytes);
  }
  return text;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = space_bytes(text, at);
    if (bytes > 0) {
      if (at > begin) words.push_back(text.substr(begin, at - begin));
      begin = at + bytes;
    }
    at += bytes > 0 ? bytes : 1;
  }
  if (begin < text.size()) words.push_back(text.substr(begin));
  return words;
}

std::vector<int32_t> code_points_of(std::string_view text) {
  std::vector<int32_t> points;
  points.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80) {
      points.push_back(byte);
      ++at;
    } else {
      points.push_back(next_code_point(text, &at));
    }
  }
  return points;
}

uint32_t WordNumbers::number(std::string_view word) {
  const auto found = numbers_.find(word);
  if (found != numbers_.end()) return found->second;
  return numbers_.emplace(std::string(word), static_cast<uint32_t>(numbers_.size())).first->second;
}

std::vector<uint32_t> WordNumbers::numbers(std::string_view text) {
  std::vector<uint32_t> result;
  for (const std::string_view word : split_words(text)) result.push_back(number(word));
  return result;
}

}  // namespace headshare
