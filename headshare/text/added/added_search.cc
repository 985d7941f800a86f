#include "headshare/text/added/added_search.h"

#include <utf8proc.h>

#include <algorithm>
#include <set>
#include <utility>

#include "headshare/base/strings/valid_utf8.h"
#include "headshare/text/unicode/bert_characters.h"

namespace headshare {
namespace {

// Tells whether \w of the regular expressions of Rust matches: letters, marks, decimal digits, connectors, and what
// else is Alphabetic or joins.
bool is_word_character(int32_t c) {
  if (c == 0x200C || c == 0x200D) return true;
  const bool circled = (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
                       (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
  if (circled) return true;
  const utf8proc_category_t category = utf8proc_category(c);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) || category == UTF8PROC_CATEGORY_PC;
}

// Returns the code point at byte `at`; -1 where no character of UTF-8 begins.
int32_t code_point_at(std::string_view text, size_t at) { return at < text.size() ? next_code_point(text, &at) : -1; }

// Returns where the character that ends before `end` begins.
size_t character_before(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && end - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return begin;
}

bool is_word_at(std::string_view text, size_t at) {
  const int32_t point = code_point_at(text, at);
  return point >= 0 && is_word_character(point);
}

bool is_word_before(std::string_view text, size_t end) {
  return end > 0 && is_word_at(text, character_before(text, end));
}

size_t before_white_space(std::string_view text, size_t end) {
  while (end > 0) {
    const size_t begin = character_before(text, end);
    const int32_t point = code_point_at(text, begin);
    if (point < 0 || !is_bert_space(point)) break;
    end = begin;
  }
  return end;
}

size_t behind_white_space(std::string_view text, size_t at) {
  while (at < text.size()) {
    size_t end = at;
    const int32_t point = next_code_point(text, &end);
    if (point < 0 || !is_bert_space(point)) break;
    at = end;
  }
  return at;
}

}  // namespace

AddedSearch::AddedSearch(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::vector<std::pair<std::string_view, int32_t>> texts;
  std::set<std::string_view> known;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const std::string_view text = tokens_[i].text;
    if (!known.insert(text).second) continue;
    texts.emplace_back(text, static_cast<int32_t>(i));
    begins_[static_cast<unsigned char>(text[0])] = true;
    longest_ = std::max(longest_, text.size());
  }
  trie_ = PieceTrie(std::move(texts));
}

AddedSearch::Found AddedSearch::longest_at(std::string_view text, size_t at) const {
  Found found;
  trie_.for_each_prefix(text.substr(at), [&](size_t bytes, int32_t number) {  // the last is the longest
    found = {.token = &tokens_[static_cast<size_t>(number)], .begin = at, .end = at + bytes};
  });
  return found;
}

AddedSearch::Found AddedSearch::find(std::string_view text, size_t at) const {
  while (at < text.size()) {
    if (!begins_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    const Found found = longest_at(text, at);
    if (found.token == nullptr) {
      ++at;
      continue;
    }
    if (!found.token->single_word || (!is_word_before(text, found.begin) && !is_word_at(text, found.end))) return found;
    at = found.end;
  }
  return {};
}

TextSpan AddedSearch::with_white_space(std::string_view text, const Found& found, size_t done) {
  TextSpan span = {found.begin, found.end};
  // The token before may have taken the white space already.
  if (found.token->strips_left) span.begin = std::max(done, before_white_space(text, found.begin));
  if (found.token->strips_right) span.end = behind_white_space(text, found.end);
  return span;
}

bool AddedSearch::may_begin_in(std::string_view piece) const {
  for (size_t at = 0; at < piece.size(); ++at) {
    if (begins_[static_cast<unsigned char>(piece[at])] && trie_.meets(piece.substr(at))) return true;
  }
  return false;
}

bool AddedSearch::begins_within(std::string_view text, size_t bytes) const {
  for (size_t at = 0; at < std::min(bytes, text.size()); ++at) {
    if (begins_[static_cast<unsigned char>(text[at])] && longest_at(text, at).token != nullptr) return true;
  }
  return false;
}

}  // namespace headshare
