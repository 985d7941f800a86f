#include "headshare/text/bpe/merge_trainer.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "headshare/base/error.h"

namespace headshare {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

uint64_t key_of_pair(int32_t left, int32_t right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint64_t>(right);
}

struct KeyHash {
  size_t operator()(uint64_t key) const { return static_cast<size_t>((key * 0x9E3779B97F4A7C15ULL) >> 20); }
};

// These are the current tokens of all distinct words, one array for all; a merged token keeps its first position.
struct Symbol {
  int32_t id = -1;  // -1: now part of the token before
  uint32_t previous = kNone;
  uint32_t next = kNone;  // kNone at the word's end
  uint32_t word = 0;
};

struct Pair {
  int64_t count = 0;                // occurrences now, weighted by the words' counts
  std::vector<uint32_t> positions;  // where it was seen to arise; some have gone since
};

struct Candidate {
  int64_t count = 0;
  uint64_t pair = 0;
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class Trainer {
 public:
  Trainer(const TokenWords& words, std::vector<std::string>* tokens, const MergeTraining& training)
      : tokens_(*tokens), training_(training) {
    for (size_t id = training.first_ordinary; id < tokens->size(); ++id) {
      ids_.emplace((*tokens)[id], static_cast<int32_t>(id));
    }
    add_words(words);
    for (const auto& [pair, occurrences] : pairs_) queue_.push({occurrences.count, pair});
  }

  std::vector<TokenMerge> train() {
    while (static_cast<int64_t>(tokens_.size()) < training_.vocabulary_size && !queue_.empty()) {
      const Candidate top = queue_.top();
      queue_.pop();
      const auto found = pairs_.find(top.pair);
      if (found == pairs_.end()) continue;
      // Counts fall while a candidate waits: it waits again with what is left.
      if (found->second.count != top.count) {
        if (found->second.count > 0) queue_.push({found->second.count, top.pair});
        continue;
      }
      if (top.count < std::max<int64_t>(training_.min_count, 1)) break;
      merge(top.pair);
    }
    return std::move(merges_);
  }

 private:
  // Returns the id of the token that two make; two pairs may make the same: "aa" "a" and "a" "aa".
  int32_t join(int32_t left, int32_t right) {
    const std::string& tail = tokens_[static_cast<size_t>(right)];
    std::string text = tokens_[static_cast<size_t>(left)];
    text += std::string_view(tail).substr(tail.starts_with(training_.prefix) ? training_.prefix.size() : 0);
    const auto [at, fresh] = ids_.emplace(text, static_cast<int32_t>(tokens_.size()));
    if (fresh) tokens_.push_back(std::move(text));
    return at->second;
  }

  void add_words(const TokenWords& words) {
    HS_CHECK(words.ids.size() < kNone, "the distinct words of the training text have ", words.ids.size(),
             " characters; train on less than ", kNone);
    symbols_.reserve(words.ids.size());
    word_counts_ = words.counts;
    for (uint32_t word = 0; word < words.counts.size(); ++word) {
      for (uint32_t i = 0; i < words.lengths[word]; ++i) {
        const auto position = static_cast<uint32_t>(symbols_.size());
        const bool last = i + 1 == words.lengths[word];
        symbols_.push_back({words.ids[position], i == 0 ? kNone : position - 1, last ? kNone : position + 1, word});
        if (i > 0) add_occurrence(position - 1);
      }
    }
  }

  // Counts the pair that begins at `position`, which has arisen.
  void add_occurrence(uint32_t position) {
    const Symbol& left = symbols_[position];
    Pair& pair = pairs_[key_of_pair(left.id, symbols_[left.next].id)];
    pair.count += word_counts_[left.word];
    pair.positions.push_back(position);
  }

  // Removes the pair that begins at `position` from the counts.
  void remove_occurrence(uint32_t position) {
    const Symbol& left = symbols_[position];
    pairs_[key_of_pair(left.id, symbols_[left.next].id)].count -= word_counts_[left.word];
  }

  void merge(uint64_t key) {
    const auto left_id = static_cast<int32_t>(key >> 32);
    const auto right_id = static_cast<int32_t>(key & UINT32_MAX);
    const int32_t result = join(left_id, right_id);
    merges_.push_back({left_id, right_id, result});
    std::vector<uint32_t> positions = std::move(pairs_[key].positions);
    // Positions go from left to right, as the merged words will be read: "aaa" becomes "aa" "a".
    std::sort(positions.begin(), positions.end());
    arisen_.clear();
    for (const uint32_t position : positions) {
      const Symbol& left = symbols_[position];
      if (left.id != left_id || left.next == kNone || symbols_[left.next].id != right_id) continue;
      merge_at(position, result);
    }
    pairs_.erase(key);
    std::sort(arisen_.begin(), arisen_.end());
    arisen_.erase(std::unique(arisen_.begin(), arisen_.end()), arisen_.end());
    for (const uint64_t pair : arisen_) {
      const auto found = pairs_.find(pair);
      if (found != pairs_.end() && found->second.count > 0) queue_.push({found->second.count, pair});
    }
  }

  void merge_at(uint32_t position, int32_t result) {
    Symbol& left = symbols_[position];
    Symbol& right = symbols_[left.next];
    const uint32_t before = left.previous;
    const uint32_t after = right.next;
    if (before != kNone) remove_occurrence(before);
    if (after != kNone) remove_occurrence(left.next);
    left.id = result;
    left.next = after;
    right.id = -1;
    if (before != kNone) {
      add_occurrence(before);
      arisen_.push_back(key_of_pair(symbols_[before].id, result));
    }
    if (after != kNone) {
      symbols_[after].previous = position;
      add_occurrence(position);
      arisen_.push_back(key_of_pair(result, symbols_[after].id));
    }
  }

  std::vector<std::string>& tokens_;
  const MergeTraining& training_;
  std::vector<TokenMerge> merges_;
  std::unordered_map<std::string, int32_t> ids_;  // of ordinary tokens
  std::vector<int64_t> word_counts_;
  std::vector<Symbol> symbols_;
  std::unordered_map<uint64_t, Pair, KeyHash> pairs_;
  std::priority_queue<Candidate> queue_;
  std::vector<uint64_t> arisen_;  // pairs the current merge gave rise to
};

}  // namespace

void add_word(std::string_view word, WordCounts* counts) {
  const auto found = counts->find(word);
  if (found != counts->end()) {
    ++found->second;
  } else {
    counts->emplace(word, 1);
  }
}

std::vector<TokenMerge> learn_merges(const TokenWords& words, const MergeTraining& training,
                                     std::vector<std::string>* tokens) {
  return Trainer(words, tokens, training).train();
}

}  // namespace headshare
