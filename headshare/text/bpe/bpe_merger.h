// Merges the bytes of one word to token ids: the heart of byte-level BPE.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/text/added/added_token.h"
#include "headshare/text/bpe/word_splitter.h"
#include "headshare/text/interface/vocabulary.h"

namespace headshare {

// A byte-level BPE tokenizer is made of this.
struct BpeDefinition {
  std::vector<std::string> tokens;     // by id: the bytes of ordinary tokens, the text of special ones
  std::vector<TokenMerge> merges;      // by rank: the first in the list is applied first
  std::vector<int32_t> special;        // ids that no merge produces, ascending
  std::optional<int32_t> end_of_text;  // one of `special`
  SplitRule split = SplitRule::kGpt2;
  bool add_prefix_space = false;       // text that does not begin with a space gets one
  std::vector<AddedToken> added = {};  // by id; special tokens without options need not be there
};

// Applies merges to words. In each step the adjacent pair of lowest rank is merged, the leftmost
// first among equals (Sennrich et al. 2016, applied to bytes). A word of n bytes takes
// O(n log n) time. Immutable, so thread-safe with a Scratch per thread.
class BpeMerger {
 public:
  // Throws Error led by `where` when a byte has no token or a pair has two merges. The ids in
  // `definition` must be in its vocabulary.
  BpeMerger(const BpeDefinition& definition, const std::string& where);

  // A Scratch is reused between words, so that short words allocate nothing.
  class Scratch {
    friend class BpeMerger;
    struct Symbol {
      int32_t id;
      uint32_t rank;  // of the merge with the next symbol, or kNoMerge
      uint32_t previous;
      uint32_t next;
    };
    std::vector<Symbol> symbols;
    std::vector<uint64_t> queue;  // rank << 32 | position: a heap with the smallest on top
  };

  // Appends the ids of `word`, which has fewer than 2^31 bytes.
  void merge(std::string_view word, Scratch* scratch, std::vector<int32_t>* ids) const;

  int32_t byte_id(char byte) const { return byte_ids_[static_cast<unsigned char>(byte)]; }

 private:
  static constexpr uint32_t kNoMerge = UINT32_MAX;
  struct Slot {
    uint64_t pair = UINT64_MAX;
    uint32_t rank = kNoMerge;
  };

  uint32_t rank_of(int32_t left, int32_t right) const;
  void start(std::string_view word, Scratch* scratch) const;
  void update_rank(uint32_t position, Scratch* scratch) const;

  int32_t byte_ids_[256];
  std::vector<int32_t> results_;  // by rank
  std::vector<Slot> slots_;       // hash table with linear probing, at most half full
  int shift_ = 0;                 // 64 - log2(slots)
};

}  // namespace headshare
