#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/ops/head_attention_backends.h"

namespace headshare {
namespace {

constexpr int64_t kQueryBlock = 128;  // queries at a time: long enough for well-shaped products

std::vector<std::string> why_not_blocked(const HeadProblem& problem, const HeadMask& mask, const HeadDropout&) {
  if (mask.alibi_slopes.defined() && !mask.causal) {
    return {"without a causal mask a block does not know how far its queries are from the end (ALiBi)"};
  }
  if (problem.query.size(2) <= kQueryBlock) return {join_text("no more queries than one block of ", kQueryBlock)};
  return {};
}

// Under a bottom-right causal mask the queries [first, last) reach the keys [0, last + S - T), and
// against those keys they are bottom-right aligned again: a block is a smaller problem of the same kind.
Tensor run_blocked(const HeadProblem& p, const HeadMask& mask, const HeadDropout& dropout) {
  const int64_t T = p.query.size(2);
  const int64_t S = p.key.size(2);
  std::vector<Tensor> blocks;
  for (int64_t first = 0; first < T; first += kQueryBlock) {
    const int64_t last = std::min(first + kQueryBlock, T);
    const int64_t keys = mask.causal ? std::clamp<int64_t>(last + S - T, 0, S) : S;
    HeadProblem block = p;
    HeadDropout block_dropout = dropout;
    block_dropout.first_query = dropout.first_query + first;
    HeadMask block_mask = mask;
    block.query = p.query.slice(2, first, last);
    block.key = p.key.slice(2, 0, keys);
    block.value = p.value.slice(2, 0, keys);
    if (p.key_bias.defined()) block.key_bias = p.key_bias.slice(2, 0, keys);
    if (mask.visible_keys.defined()) block_mask.visible_keys = mask.visible_keys.slice(1, 0, keys);
    if (keys == 0) {
      blocks.push_back(at::zeros({p.query.size(0), p.heads, last - first, p.value.size(3)}, p.query.options()));
    } else {
      blocks.push_back(kReferenceBackend.run(block, block_mask, block_dropout));
    }
  }
  return at::cat(blocks, 2);
}

}  // namespace

const HeadBackend kBlockedBackend = {.name = "blocked",
                                     .summary = "plain formula over blocks of queries, causal blocks skipped",
                                     .products = libtorch_products,
                                     .objections = why_not_blocked,
                                     .run = run_blocked};

}  // namespace headshare
