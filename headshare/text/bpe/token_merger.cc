#include "headshare/text/bpe/token_merger.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "headshare/base/error.h"

namespace headshare {
namespace {

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// Returns the first slot by Fibonacci hashing: the high bits of the product depend on all bits of the key.
size_t first_slot(uint64_t key, int shift) { return static_cast<size_t>((key * 0x9E3779B97F4A7C15ULL) >> shift); }

}  // namespace

TokenMerger::TokenMerger(const std::vector<TokenMerge>& merges, const std::string& where) {
  const size_t slots = std::bit_ceil(std::max<size_t>(merges.size() * 2, 2));
  shift_ = 64 - std::countr_zero(slots);
  slots_.resize(slots);
  for (const TokenMerge& merge : merges) {
    const uint64_t key = pair_key(merge.left, merge.right);
    size_t slot = first_slot(key, shift_);
    while (slots_[slot].rank != kNoMerge && slots_[slot].pair != key) slot = (slot + 1) & (slots - 1);
    HS_CHECK(slots_[slot].rank == kNoMerge, where, ": merges ", slots_[slot].rank, " and ", results_.size(),
             " are of the same two tokens, ", merge.left, " and ", merge.right);
    slots_[slot] = {key, static_cast<uint32_t>(results_.size())};
    results_.push_back(merge.result);
  }
}

uint32_t TokenMerger::rank_of(int32_t left, int32_t right) const {
  const uint64_t key = pair_key(left, right);
  for (size_t slot = first_slot(key, shift_);; slot = (slot + 1) & (slots_.size() - 1)) {
    // An empty slot's rank is kNoMerge.
    if (slots_[slot].pair == key || slots_[slot].rank == kNoMerge) return slots_[slot].rank;
  }
}

void TokenMerger::update_rank(uint32_t position, Scratch* scratch) const {
  auto& symbols = scratch->symbols;
  Scratch::Symbol& symbol = symbols[position];
  symbol.rank = symbol.next < symbols.size() ? rank_of(symbol.id, symbols[symbol.next].id) : kNoMerge;
}

void TokenMerger::start(Scratch* scratch) const {
  auto& [tokens, symbols, queue] = *scratch;
  symbols.resize(tokens.size());
  queue.clear();
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto position = static_cast<uint32_t>(i);
    symbols[i] = {tokens[i], kNoMerge, position - 1, position + 1};
  }
  for (uint32_t position = 0; position < symbols.size(); ++position) {
    update_rank(position, scratch);
    const uint32_t rank = symbols[position].rank;
    if (rank != kNoMerge) queue.push_back(static_cast<uint64_t>(rank) << 32 | position);
  }
  std::make_heap(queue.begin(), queue.end(), std::greater<>());
}

void TokenMerger::merge(Scratch* scratch, std::vector<int32_t>* ids) const {
  HS_CHECK(scratch->tokens.size() <= INT32_MAX, "a single word of ", scratch->tokens.size(),
           " bytes or characters: the longest is ", INT32_MAX, "; give the text in pieces");
  start(scratch);
  auto& symbols = scratch->symbols;
  auto& queue = scratch->queue;
  const auto push = [&](uint32_t position) {
    update_rank(position, scratch);
    if (symbols[position].rank == kNoMerge) return;
    queue.push_back(static_cast<uint64_t>(symbols[position].rank) << 32 | position);
    std::push_heap(queue.begin(), queue.end(), std::greater<>());
  };
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const auto rank = static_cast<uint32_t>(queue.back() >> 32);
    const auto position = static_cast<uint32_t>(queue.back());
    queue.pop_back();
    Scratch::Symbol& left = symbols[position];
    if (left.rank != rank) continue;  // a neighbour was merged since this entry was made
    Scratch::Symbol& right = symbols[left.next];
    right.rank = kNoMerge;
    left.id = results_[rank];
    left.next = right.next;
    if (left.next < symbols.size()) symbols[left.next].previous = position;
    push(position);
    if (position > 0) push(left.previous);
  }
  for (uint32_t position = 0; position < symbols.size(); position = symbols[position].next) {
    ids->push_back(symbols[position].id);
  }
}

}  // namespace headshare
