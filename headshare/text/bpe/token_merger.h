// Merges adjacent tokens by rank: the heart of byte-pair encoding.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headshare/text/interface/vocabulary.h"

namespace headshare {

// In each step the adjacent pair of lowest rank is merged, the leftmost first among equals (Sennrich et al. 2016). A
// text of n tokens takes O(n log n) time. Immutable, so thread-safe with a Scratch per thread.
class TokenMerger {
 public:
  // `merges` are by rank. Throws Error led by `where` when a pair has two merges.
  TokenMerger(const std::vector<TokenMerge>& merges, const std::string& where);

  // A Scratch is reused between words, so that short words allocate nothing.
  class Scratch {
   public:
    std::vector<int32_t> tokens;  // what is to be merged: the caller's

   private:
    friend class TokenMerger;
    struct Symbol {
      int32_t id;
      uint32_t rank;  // of the merge with the next symbol, or kNoMerge
      uint32_t previous;
      uint32_t next;
    };
    std::vector<Symbol> symbols;
    std::vector<uint64_t> queue;  // rank << 32 | position: a heap with the smallest on top
  };

  // Appends what becomes of scratch->tokens, which are fewer than 2^31.
  void merge(Scratch* scratch, std::vector<int32_t>* ids) const;

 private:
  static constexpr uint32_t kNoMerge = UINT32_MAX;
  struct Slot {
    uint64_t pair = UINT64_MAX;
    uint32_t rank = kNoMerge;
  };

  uint32_t rank_of(int32_t left, int32_t right) const;
  void start(Scratch* scratch) const;
  void update_rank(uint32_t position, Scratch* scratch) const;

  std::vector<int32_t> results_;  // by rank
  std::vector<Slot> slots_;       // hash table with linear probing, at most half full
  int shift_ = 0;                 // 64 - log2(slots)
};

}  // namespace headshare
