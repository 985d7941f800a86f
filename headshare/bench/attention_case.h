// A case is what the attention benchmarks ask: one problem of a scheme, its sizes, and whether gradients are wanted.
// Letters are as in base/dims.h.
#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string>
#include <vector>

#include "headshare/attention/kv_cache.h"
#include "headshare/attention/options.h"
#include "headshare/attention/scheme.h"
#include "headshare/ops/precision.h"

namespace headshare {

enum class Pass { kForward, kTraining };  // training: forward, then the gradients of all inputs

struct AttentionCase {
  std::string scheme = "mha";
  int64_t batch = 4;        // B
  int64_t heads = 12;       // H
  int64_t head_width = 64;  // D
  int64_t key_width = 128;  // R, of collaborative attention
  int64_t queries = 512;    // T
  int64_t keys = 512;       // S
  bool causal = false;
  double dropout = 0;
  DropoutMaskKind dropout_mask = DropoutMaskKind::kPerHead;
  Pass pass = Pass::kForward;
  Precision precision = Precision::kFp32;  // of all inputs; not kAuto
  c10::Device device = c10::Device(c10::kCPU);
};

// Tells whether a case is decoding: one query of each sequence against a cache, without gradients.
bool is_decoding(const AttentionCase& one);

const EnumNames<Pass>& pass_names();
std::string pass_name(Pass pass);

// Returns "mhe_add training causal B4 H12 T512 D64 dropout 0.1": what differs between the cases of one run.
std::string case_name(const AttentionCase& one);

// Problems like the ones that models pose: made by the scheme itself from queries and a memory, whose
// heads lie side by side as projections leave them, [B, T, heads, width] seen as [B, heads, T, width].
struct CaseInputs {
  std::shared_ptr<Scheme> scheme;  // in training when the case has dropout
  Tensor queries = {};             // leaf
  Memory memory = {};              // leaves: what the scheme keeps, such as keys and values, or one part that is both
  Tensor output_gradient = {};     // of the heads, as the problem has them
  HeadMask mask = {};
  HeadDropout dropout = {};
  std::shared_ptr<KvCache> cache = {};  // decoding: holds the memory, which is no leaf then

  HeadProblem problem() const { return scheme->posed(queries, memory).problem; }
};

// Counts the floating-point operations of the products that heads and, in training, their gradients take: two products
// and five more for each head. Every contender is credited with them, whatever it computes: a scheme that shares scores
// takes fewer and may exceed the rate of a product.
double operations_of(const AttentionCase& one, const HeadProblem& problem);

// Returns the dimension of the keys that the values begin with, where the values are the keys or a slice of them.
std::optional<int64_t> values_in_keys(const HeadProblem& problem);

enum class Fill {
  kNormal,   // everything N(0, 1), and head embeddings wide enough that heads differ
  kUniform,  // queries 0 and the memory 1: the scores of a query are equal, and so are the values of all tokens
};

// Decoding has its memory in a KvCache, as a model has.
CaseInputs make_inputs(const AttentionCase& one, Fill fill);

}  // namespace headshare
