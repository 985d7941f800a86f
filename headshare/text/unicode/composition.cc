#include "headshare/text/unicode/composition.h"

#include <utf8proc.h>

#include <algorithm>
#include <bitset>
#include <memory>

#include "headshare/text/unicode/canonical_order.h"
#include "headshare/text/unicode/utf8.h"

namespace headshare {
namespace {

constexpr int32_t kFirstMark = 0x300;           // all before it are plain
constexpr int32_t kBehindLetters = 0x2FA1E;     // all from there on are plain: none decomposes or is a mark
constexpr unsigned char kFirstMarkByte = 0xCC;  // begins U+0300 in UTF-8, and no character before it has such a byte

// Returns what two characters compose to; -1 for nothing. Composites that are younger than Unicode 9 are none.
int32_t composite(int32_t first, int32_t second) {
  utf8proc_int32_t pair[2] = {first, second};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  if (utf8proc_normalize_utf32(pair, 2, options) != 1) return -1;
  int32_t parts[kLongestDecomposition];
  return bert_decomposition(pair[0], parts) > 1 ? pair[0] : -1;
}

// Composes characters in canonical order, in place.
void compose_all(std::vector<int32_t>* points) {
  std::vector<int32_t> made;
  size_t starter = SIZE_MAX;  // in `made`
  int last_class = 0;         // of the character that was kept last behind the starter
  for (const int32_t point : *points) {
    const int combining_class = bert_combining_class(point);
    const bool touches = starter != SIZE_MAX && (starter + 1 == made.size() || last_class < combining_class);
    const int32_t whole = touches ? composite(made[starter], point) : -1;
    if (whole >= 0) {
      made[starter] = whole;
      continue;
    }
    if (combining_class == 0) starter = made.size();
    last_class = combining_class;
    made.push_back(point);
  }
  *points = std::move(made);
}

std::vector<int32_t> composed(const std::vector<int32_t>& points) {
  std::vector<int32_t> ordered;
  CanonicalOrder<int> order;
  const auto put = [&ordered](int32_t point, int) { ordered.push_back(point); };
  for (const int32_t point : points) {
    int32_t parts[kLongestDecomposition];
    order.add(parts, bert_decomposition(point, parts), 0, put);
  }
  order.end_marks(put);
  compose_all(&ordered);
  return ordered;
}

// A plain character stays what it is by itself, and nothing before it changes by it. The set has those before
// kBehindLetters.
using PlainSet = std::bitset<kBehindLetters>;

std::unique_ptr<PlainSet> find_plain() {
  auto plain = std::make_unique<PlainSet>();
  plain->set();
  int32_t parts[kLongestDecomposition];
  for (int32_t point = kFirstMark; point < kBehindLetters; ++point) {
    if (bert_combining_class(point) != 0) plain->reset(static_cast<size_t>(point));
    const int count = bert_decomposition(point, parts);
    // The last part of a composite is what its first ones compose with: a mark, or the end of a syllable.
    if (count > 1) plain->reset(static_cast<size_t>(parts[count - 1]));
    const bool stays =
        count == 1 ? parts[0] == point : bert_combining_class(parts[0]) == 0 && composed({point}).front() == point;
    if (!stays) plain->reset(static_cast<size_t>(point));
  }
  return plain;
}

bool is_plain(int32_t point) {
  if (point < kFirstMark || point >= kBehindLetters) return true;
  static const std::unique_ptr<PlainSet> plain = find_plain();
  return plain->test(static_cast<size_t>(point));
}

// Tells whether a text may have a character that is not plain.
bool may_change(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char byte) { return static_cast<unsigned char>(byte) >= kFirstMarkByte; });
}

}  // namespace

ComposedText::ComposedText(std::string_view text) : original_(text) {
  if (!may_change(text)) return;
  size_t begin = 0;       // of the last plain character, with what stands behind it
  bool changing = false;  // what begins there has characters that are not plain
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const int32_t point = next_code_point(text, &at);
    if (point >= 0 && !is_plain(point)) {
      changing = true;
      continue;
    }
    if (changing) compose(begin, start);
    changing = false;
    if (point < 0) ++at;
    begin = point < 0 ? at : start;
  }
  if (changing) compose(begin, text.size());
  if (!changes_.empty()) made_ += original_.substr(copied_);
}

void ComposedText::compose(size_t begin, size_t end) {
  std::vector<int32_t> points;
  for (size_t at = begin; at < end;) points.push_back(next_code_point(original_, &at));
  const std::vector<int32_t> after = composed(points);
  if (after == points) return;
  made_ += original_.substr(copied_, begin - copied_);
  const size_t start = made_.size();
  for (const int32_t point : after) append_utf8(point, &made_);
  changes_.push_back({.made = {start, made_.size()}, .original = {begin, end}});
  copied_ = end;
}

size_t ComposedText::original_begin(size_t at) const {
  const auto behind = std::upper_bound(changes_.begin(), changes_.end(), at,
                                       [](size_t byte, const Change& one) { return byte < one.made.begin; });
  if (behind == changes_.begin()) return at;
  const Change& last = *(behind - 1);
  return at < last.made.end ? last.original.begin : last.original.end + (at - last.made.end);
}

size_t ComposedText::original_end(size_t at) const {
  const auto behind = std::lower_bound(changes_.begin(), changes_.end(), at,
                                       [](const Change& one, size_t byte) { return one.made.begin < byte; });
  if (behind == changes_.begin()) return at;
  const Change& last = *(behind - 1);
  return at <= last.made.end ? last.original.end : last.original.end + (at - last.made.end);
}

TextSpan ComposedText::original(TextSpan span) const { return {original_begin(span.begin), original_end(span.end)}; }

}  // namespace headshare
