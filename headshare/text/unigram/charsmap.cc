#include "headshare/text/unigram/charsmap.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/strings/valid_utf8.h"

namespace headshare {
namespace {

constexpr size_t kUnitBytes = 4;
constexpr size_t kLongestMapped = 256;  // bytes; SentencePiece's own maps have at most 33

uint32_t little_endian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = kUnitBytes; i > 0; --i) value = (value << 8) | static_cast<unsigned char>(bytes[at + i - 1]);
  return value;
}

// A unit has these parts, as Darts packs them.
bool has_leaf(uint32_t unit) { return ((unit >> 8) & 1) == 1; }
uint32_t leaf_value(uint32_t unit) { return unit & 0x7FFFFFFF; }
uint32_t label(uint32_t unit) { return unit & 0x800000FF; }
uint32_t offset(uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }

}  // namespace

Charsmap::Charsmap(std::string bytes, const std::string& where) : bytes_(std::move(bytes)) {
  HS_CHECK(bytes_.size() >= kUnitBytes, where, ": a map of ", bytes_.size(), " bytes has no size: it is damaged");
  const uint32_t size = little_endian(bytes_, 0);
  HS_CHECK(size % kUnitBytes == 0 && size <= bytes_.size() - kUnitBytes, where, ": a trie of ", size,
           " bytes does not fit into a map of ", bytes_.size(), " bytes: it is damaged");
  for (size_t at = kUnitBytes; at < kUnitBytes + size; at += kUnitBytes) units_.push_back(little_endian(bytes_, at));
  texts_ = std::string_view(bytes_).substr(kUnitBytes + size);
  const size_t valid = valid_utf8_prefix(texts_);
  HS_CHECK(valid == texts_.size(), where, ": the texts of the map are not UTF-8 at byte ", valid, ": it is damaged");
  for (size_t begin = 0, end = 0; begin < texts_.size(); begin = end + 1) {
    end = std::min(texts_.find('\0', begin), texts_.size());
    HS_CHECK(end - begin <= kLongestMapped, where, ": the map makes ", end - begin, " bytes of a character, more than ",
             kLongestMapped, ": it is damaged");
  }
}

bool Charsmap::find(std::string_view characters, std::string_view* becomes) const {
  if (units_.empty()) return false;
  uint64_t node = offset(units_[0]);
  for (const char byte : characters) {
    node ^= static_cast<unsigned char>(byte);
    if (byte == 0 || node >= units_.size()) return false;
    const uint32_t unit = units_[node];
    if (label(unit) != static_cast<unsigned char>(byte)) return false;
    node ^= offset(unit);
    if (!has_leaf(unit)) continue;
    if (node >= units_.size()) return false;
    const uint32_t text = leaf_value(units_[node]);
    if (text > texts_.size()) return false;
    // A damaged map may point into a character.
    if (text < texts_.size() && (static_cast<unsigned char>(texts_[text]) & 0xC0) == 0x80) return false;
    *becomes = texts_.substr(text, texts_.find('\0', text) - text);
    return true;
  }
  return false;
}

// Follows every key of the trie, from the place behind each of its bytes. Parts that keys share are followed once.
class Charsmap::SearchCheck {
 public:
  SearchCheck(const Charsmap& map, const std::string& where)
      : map_(map), where_(where), keys_(map.units_.size(), kNew) {}

  // Returns the most keys that one text can pass from `place` on.
  int keys_from(uint64_t place, int depth) {
    HS_CHECK(depth <= kLongestKey, where_, ": a key of more than ", kLongestKey, " bytes: it is damaged");
    // The search reads at place ^ byte for any byte.
    HS_CHECK((place | 0xFF) < map_.units_.size(), where_, ": a key leads to unit ", place | 0xFF, " of ",
             map_.units_.size(), ": it is damaged");
    int8_t& known = keys_[place];
    HS_CHECK(known != kOpen, where_, ": a key that has no end: it is damaged");
    if (known != kNew) return known;
    known = kOpen;
    int most = 0;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t unit = map_.units_[place ^ byte];
      if (label(unit) != byte) continue;
      const uint64_t next = place ^ byte ^ offset(unit);
      if (next == place && !has_leaf(unit)) continue;  // an unused unit, which zero bytes lead to again and again
      if (has_leaf(unit)) check_value(next);
      most = std::max(most, keys_from(next, depth + 1) + (has_leaf(unit) ? 1 : 0));
    }
    HS_CHECK(most <= kMostKeys, where_, ": more than ", kMostKeys, " keys that begin with each other: it is damaged");
    return keys_[place] = static_cast<int8_t>(most);
  }

 private:
  static constexpr int kLongestKey = 256;
  static constexpr int kMostKeys = 32;
  static constexpr int8_t kNew = -1;
  static constexpr int8_t kOpen = -2;

  void check_value(uint64_t place) const {
    HS_CHECK(place < map_.units_.size(), where_, ": a value beyond the trie: it is damaged");
    const uint32_t text = leaf_value(map_.units_[place]);
    const bool inside = text < map_.texts_.size() && (static_cast<unsigned char>(map_.texts_[text]) & 0xC0) != 0x80;
    HS_CHECK(inside, where_, ": a value that points to byte ", text, " of ", map_.texts_.size(),
             ", where no text begins: it is damaged");
  }

  const Charsmap& map_;
  const std::string& where_;
  std::vector<int8_t> keys_;  // by place: keys_from() it, or kNew, or kOpen while it is being found
};

void Charsmap::check_searches(const std::string& where) const {
  HS_CHECK(!units_.empty(), where, ": it has no trie: it is damaged");
  // Texts of the map end with a zero byte, and the last one must have it.
  HS_CHECK(texts_.ends_with('\0'), where, ": its last text has no end: it is damaged");
  SearchCheck(*this, where).keys_from(offset(units_[0]), 0);
}

}  // namespace headshare
