#include "headshare/text/hash/features.h"

#include <algorithm>
#include <unordered_map>

#include "headshare/text/bpe/bpe_tokenizer.h"
#include "headshare/text/hash/digest.h"
#include "headshare/text/hash/word_hasher.h"
#include "headshare/text/unicode/code_points.h"

namespace headshare {
namespace {

// Returns in how many places a word is cut into a prefix and a suffix; long words are not cut.
int64_t cuts(const CodePoints& points) { return points.count() > kLongestWordWithParts ? 0 : points.count() - 1; }

double weight(int64_t count, int64_t word_length, int64_t length) {
  return static_cast<double>(count) / static_cast<double>(std::max<int64_t>(word_length + 1 - length, 1));
}

// Keeps counts in the order of first occurrence.
template <class Key>
class Counter {
 public:
  struct Entry {
    Key key;
    int64_t length;
    int64_t count;
  };

  void add(const Key& key, int64_t length) {
    const auto [found, fresh] = numbers_.emplace(key, entries_.size());
    if (fresh) entries_.push_back({key, length, 0});
    ++entries_[found->second].count;
  }

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::unordered_map<Key, size_t> numbers_;
  std::vector<Entry> entries_;
};

class AffixFeatures : public WordFeatures {
 public:
  std::vector<WordFeature> features(std::string_view word) const override {
    const CodePoints points(word);
    Counter<std::string_view> parts;
    parts.add(word, points.count());
    for (int64_t cut = 1; cut <= cuts(points); ++cut) {
      parts.add(word.substr(0, points.byte(cut)), cut);
      parts.add(word.substr(points.byte(cut)), points.count() - cut);
    }
    std::vector<WordFeature> found;
    for (const auto& part : parts.entries()) {
      const Signature hash = digest(part.key);
      found.push_back({.seed = static_cast<uint32_t>(hash.high >> 32),
                       .place = static_cast<int64_t>(remainder(hash, kHashBuckets)),
                       .weight = weight(part.count, points.count(), part.length)});
    }
    return found;
  }

  nlohmann::json settings() const override { return {{"features", "affix"}}; }
};

class BpeFeatures : public WordFeatures {
 public:
  explicit BpeFeatures(BpeDefinition definition) : tokenizer_(std::move(definition)) {}

  std::vector<WordFeature> features(std::string_view word) const override {
    const CodePoints points(word);
    const std::vector<std::string>& tokens = tokenizer_.definition().tokens;
    Counter<int32_t> pieces;
    for (const int32_t id : tokenizer_.encode(with_cuts(word, points))) {
      pieces.add(id, static_cast<int64_t>(tokens[static_cast<size_t>(id)].size()));
    }
    const bool only_one = pieces.entries().size() == 1;
    std::vector<WordFeature> found;
    for (const auto& piece : pieces.entries()) {
      if (!only_one && tokens[static_cast<size_t>(piece.key)] == "-") continue;
      found.push_back({.seed = static_cast<uint32_t>(piece.key),
                       .place = piece.key % kHashBuckets,
                       .weight = weight(piece.count, points.count(), piece.length)});
    }
    return found;
  }

  nlohmann::json settings() const override { return {{"features", "bpe"}, {"bpe", tokenizer_.to_json()}}; }

 private:
  // Returns "dog-d-og-do-g" for "dog".
  static std::string with_cuts(std::string_view word, const CodePoints& points) {
    std::string text(word);
    for (int64_t cut = 1; cut <= cuts(points); ++cut) {
      text += '-';
      text += word.substr(0, points.byte(cut));
      text += '-';
      text += word.substr(points.byte(cut));
    }
    return text;
  }

  BpeTokenizer tokenizer_;
};

}  // namespace

std::shared_ptr<const WordFeatures> make_affix_features() { return std::make_shared<AffixFeatures>(); }

std::shared_ptr<const WordFeatures> make_bpe_features(const BpeTokenizer& tokenizer) {
  BpeDefinition definition = tokenizer.definition();
  definition.add_prefix_space = false;
  return std::make_shared<BpeFeatures>(std::move(definition));
}

}  // namespace headshare
