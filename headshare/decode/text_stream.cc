#include "headshare/decode/text_stream.h"

#include <algorithm>
#include <utility>

#include "headshare/base/error.h"

namespace headshare {
namespace {

// So many earlier tokens are enough for any tokenizer's spacing rules and for a code point of four byte tokens.
constexpr size_t kContextTokens = 5;

// The longest code point has four tokens of a byte each. Text that is still unfinished after that many is no code
// point: it is shown as it is.
constexpr size_t kLongestCodePoint = 4;

// Returns the length that a UTF-8 sequence has by its first byte; 0 for a byte that cannot begin one.
size_t sequence_length(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return 2;
  if (first >= 0xE0 && first <= 0xEF) return 3;
  if (first >= 0xF0 && first <= 0xF4) return 4;
  return 0;
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Returns the length of the longest end of `text` that begins `stop` without finishing it; 0 where there is none.
size_t begun(std::string_view text, std::string_view stop) {
  for (size_t length = std::min(text.size(), stop.size() - 1); length > 0; --length) {
    if (text.ends_with(stop.substr(0, length))) return length;
  }
  return 0;
}

}  // namespace

size_t unfinished_utf8(std::string_view text) {
  for (size_t length = 1; length <= std::min<size_t>(3, text.size()); ++length) {
    const char c = text[text.size() - length];
    if (!is_continuation(c)) return sequence_length(static_cast<unsigned char>(c)) > length ? length : 0;
  }
  return 0;
}

TextStream::TextStream(DecodeFunction decode, std::span<const int32_t> prompt) : decode_(std::move(decode)) {
  const std::span<const int32_t> context = prompt.last(std::min(prompt.size(), kContextTokens));
  window_.assign(context.begin(), context.end());
  shown_ = window_.size();
}

std::string TextStream::pending() const {
  const std::span<const int32_t> window(window_);
  const std::string before = decode_(window.first(shown_));
  std::string all = decode_(window);
  const auto differ = std::mismatch(before.begin(), before.end(), all.begin(), all.end());
  auto start = static_cast<size_t>(differ.second - all.begin());
  // A U+FFFD at the end of `before` has become a real character, which may share its first byte.
  while (start < before.size() && start > 0 && start < all.size() && is_continuation(all[start])) --start;
  return all.substr(start);
}

// Marks the window as shown and keeps only the context of the next token.
std::string TextStream::take(std::string text) {
  if (window_.size() > kContextTokens) window_.erase(window_.begin(), window_.end() - kContextTokens);
  shown_ = window_.size();
  return text;
}

std::string TextStream::push(int32_t token) {
  window_.push_back(token);
  std::string text = pending();
  const bool unfinished = unfinished_utf8(text) > 0 || text.ends_with("\uFFFD");
  if (unfinished && window_.size() - shown_ < kLongestCodePoint) return "";
  return take(std::move(text));
}

std::string TextStream::finish() { return take(pending()); }

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const std::string& stop : stops_) HS_CHECK(!stop.empty(), "a stop string is empty: it would stop everything");
}

std::string StopMatcher::push(std::string_view text) {
  if (found_) return "";
  // The text goes in byte by byte, so that the result does not depend on how it was cut into pieces.
  for (const char c : text) {
    held_ += c;
    size_t longest = 0;
    for (const std::string& stop : stops_) {
      if (held_.ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) {
      found_ = true;
      held_.resize(held_.size() - longest);
      return std::exchange(held_, "");
    }
  }
  size_t waiting = 0;
  for (const std::string& stop : stops_) waiting = std::max(waiting, begun(held_, stop));
  std::string certain = held_.substr(0, held_.size() - waiting);
  held_.erase(0, held_.size() - waiting);
  return certain;
}

std::string StopMatcher::finish() { return std::exchange(held_, ""); }

}  // namespace headshare
