#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/ops/head_attention/backends.h"

namespace headshare {
namespace {

std::vector<std::string> why_not_blocked(const HeadProblem& problem, const HeadMask&, const HeadDropout&) {
  if (problem.query.size(2) <= kQueryBlock) return {join_text("no more queries than one block of ", kQueryBlock)};
  return {};
}

// Queries at the positions [first, last) may see the keys [begin, end).
struct Reach {
  int64_t begin, end;
};

Reach reach_of(const HeadMask& mask, int64_t first, int64_t last, int64_t S) {
  Reach reach{0, S};
  if (mask.window > 0)
    reach = {std::clamp<int64_t>(first - mask.window, 0, S), std::clamp<int64_t>(last + mask.window, 0, S)};
  if (mask.causal) reach.end = std::clamp<int64_t>(last, 0, S);
  return reach;
}

HeadProblem block_of(const HeadProblem& p, int64_t first_query, int64_t last_query, const Reach& keys) {
  HeadProblem block = p;
  block.query = p.query.slice(2, first_query, last_query);
  block.key = p.key.slice(2, keys.begin, keys.end);
  block.value = p.value.slice(2, keys.begin, keys.end);
  if (p.key_bias.defined()) block.key_bias = p.key_bias.slice(2, keys.begin, keys.end);
  return block;
}

Tensor run_blocked(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout) {
  const int64_t T = p.query.size(2);
  const int64_t S = p.key.size(2);
  std::vector<Tensor> blocks;
  for (int64_t first = 0; first < T; first += kQueryBlock) {
    const int64_t last = std::min(first + kQueryBlock, T);
    const Reach keys = reach_of(mask, first + S - T, last + S - T, S);
    if (keys.begin >= keys.end) {
      blocks.push_back(at::zeros({p.query.size(0), p.heads, last - first, p.value.size(3)}, p.query.options()));
      continue;
    }
    HeadDropout block_dropout = dropout;
    block_dropout.first_query = dropout.first_query + first;
    HeadMask block_mask = mask;
    if (mask.visible_keys.defined()) block_mask.visible_keys = mask.visible_keys.slice(1, keys.begin, keys.end);
    blocks.push_back(attend_to_block(block_of(p, first, last, keys), block_mask, block_dropout,
                                     {.first_query = first + S - T - keys.begin, .first_key = keys.begin}));
  }
  return at::cat(blocks, 2);
}

}  // namespace

const HeadBackend kBlockedBackend = {.name = "blocked",
                                     .summary = "plain formula over blocks of queries and the keys that they may see",
                                     .products = libtorch_products,
                                     .objections = why_not_blocked,
                                     .run = run_blocked};

}  // namespace headshare
