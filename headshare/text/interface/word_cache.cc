#include "headshare/text/interface/word_cache.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace headshare {
namespace {

uint32_t hash_of(std::string_view word) { return static_cast<uint32_t>(std::hash<std::string_view>()(word)); }

}  // namespace

size_t WordCache::locate(std::string_view word, uint32_t hash) const {
  size_t index = hash & (slots_.size() - 1);
  while (true) {
    const Slot& slot = slots_[index];
    if (slot.bytes == 0) return index;
    if (slot.hash == hash && slot.bytes == word.size() &&
        std::memcmp(text_.data() + slot.text, word.data(), word.size()) == 0) {
      return index;
    }
    index = (index + 1) & (slots_.size() - 1);
  }
}

std::span<const int32_t> WordCache::find(std::string_view word) const {
  if (word.size() > kLongestWord) return {};
  const Slot& slot = slots_[locate(word, hash_of(word))];
  return {ids_.data() + slot.first, slot.count};
}

void WordCache::insert(std::string_view word, std::span<const int32_t> ids) {
  if (word.size() > kLongestWord) return;
  if (words_ == kMostWords) {
    std::fill(slots_.begin(), slots_.end(), Slot());
    text_.clear();
    ids_.clear();
    words_ = 0;
  }
  const uint32_t hash = hash_of(word);
  slots_[locate(word, hash)] = {hash, static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(ids_.size()),
                                static_cast<uint16_t>(word.size()), static_cast<uint16_t>(ids.size())};
  text_.insert(text_.end(), word.begin(), word.end());
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  ++words_;
}

}  // namespace headshare
