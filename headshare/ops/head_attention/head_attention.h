// The attention core solves one problem, which every scheme poses, by the first backend that can. Letters are those of
// base/dims.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/ops/layer.h"
#include "headshare/ops/precision.h"

namespace headshare {
namespace kernel_glue {
struct KernelPasses;
}

// The problem has the canonical form (docs/mathematics.md#the-canonical-form):
//   score_h[i,j] = scale * (q_{h,i} . k_{g(h),j} + c_h[j]),  c_h[j] = query_shift_h . k_j + key_bias[h,j]
// With a sink, softmax runs over one more key, whose score is sink_h for every query and whose value is 0: weights of
// the keys sum to less than one. Head counts of query, key and value are each 1, a divisor of H, or H; head h reads
// head h / (H / count).
struct HeadProblem {
  int64_t heads = 1;        // H
  Tensor query;             // [B, Hq, T, Dk]
  Tensor key;               // [B, Hk, S, Dk]
  Tensor value;             // [B, Hv, S, Dv]
  Tensor query_shift = {};  // [H, Dk] or undefined; needs Hq == Hk == 1
  Tensor key_bias = {};     // [B, H, S] or undefined
  double scale = 1;
  Tensor sinks = {};  // [H] or undefined
};

// A mask says what a query may see. Causal masks are aligned bottom-right: query i of T sees key j of S when
// j <= i + S - T, so that one new query sees the whole cache. T = 2, S = 4:  1 1 1 0
//                                                                            1 1 1 1
// With a window W, query i sees key j when also |i + S - T - j| <= W: W keys on either side, or under a causal mask the
// last W + 1.
struct HeadMask {
  bool causal = false;
  Tensor visible_keys = {};  // bool [B, S]; false hides a padding key from every query. Undefined: all visible
  Tensor alibi_slopes = {};  // [H] or undefined: score gains -slope_h * |i + S - T - j|, after scaling
  int64_t window = 0;        // W; 0: no limit
};

// This is dropout on the attention weights. `site` names the random stream; p counts only while it trains. A caller
// that has no layers gives the `key` of the stream instead, and p always counts. p is the nearest multiple of 1/65536,
// and every backend draws the same mask, on every device.
struct HeadDropout {
  double p = 0;
  const Layer* site = nullptr;
  bool shared = false;      // one mask for all heads
  int64_t first_query = 0;  // which query of the whole mask the problem's first one is
  std::optional<uint64_t> key = {};

  bool active() const { return p > 0 && (key.has_value() || (site != nullptr && site->is_training())); }
  // Returns the key of the mask: a site's is Layer::dropout_key(0).
  uint64_t mask_key() const;
};

// Returns softmax(score + mask) V, head by head: [B, H, T, Dv]. A query that sees no key gets zeros and gives no
// gradient. Hidden keys and values get the weight zero, so they may hold anything finite, as long as their scores are
// finite too; a NaN among them would show. T, S or B may be 0. The backend is the first of head_backends() without
// objections, or the one HEADSHARE_BACKEND names; an unknown name or one that cannot run is an Error with every
// backend's reasons.
Tensor attend(const HeadProblem& problem, const HeadMask& mask, const HeadDropout& dropout);

// Returns bool [B or 1, T]: which queries see at least one key; undefined when all do.
Tensor live_queries(const HeadProblem& problem, const HeadMask& mask);

// A backend is a way to solve the problem.
struct HeadBackend {
  std::string_view name;
  std::string_view summary;
  std::optional<c10::DeviceType> device = {};  // the one that it computes on; nothing: that of the tensors
  bool has_gradients = true;
  // Returns the precision in which its matrix products multiply, for a problem that it can take.
  Precision (*products)(const HeadProblem&);
  // Tells whether libtorch has a fused kernel for a problem that it can take; null: it has one form alone.
  bool (*is_fused)(const HeadProblem&, const HeadMask&) = nullptr;
  // Returns sentences on what it cannot take, besides another device and gradients.
  std::vector<std::string> (*objections)(const HeadProblem&, const HeadMask&, const HeadDropout&);
  Tensor (*run)(const HeadProblem&, const HeadMask&, const HeadDropout&);
  // The two passes behind run(), of a backend that has its own gradients; null: autograd finds those of run().
  const kernel_glue::KernelPasses* passes = nullptr;

  // Returns all sentences on why it cannot take this problem; empty when it can. `gradients` says whether a backward
  // pass will follow; without it, gradient mode and the tensors say so.
  std::vector<std::string> why_not(const HeadProblem& problem, const HeadMask& mask, const HeadDropout& dropout,
                                   std::optional<bool> gradients = {}) const;
};

// Returns the backends in order of preference.
const std::vector<HeadBackend>& head_backends();

// Returns the backend that `attend` would use; `gradients` as in why_not().
const HeadBackend& choose_head_backend(const HeadProblem& problem, const HeadMask& mask, const HeadDropout& dropout,
                                       std::optional<bool> gradients = {});

// This is the same for people: which backend, and what keeps those before it from the problem.
struct BackendChoice {
  struct Refused {
    std::string_view backend;
    std::vector<std::string> reasons;  // none where HEADSHARE_BACKEND asks for another one
  };
  std::string_view backend;
  Precision products = Precision::kFp32;  // HeadBackend::products
  std::optional<bool> fused = {};         // HeadBackend::is_fused
  std::vector<Refused> refused = {};      // in order of preference
};
BackendChoice explain_head_backend(const HeadProblem& problem, const HeadMask& mask, const HeadDropout& dropout);

}  // namespace headshare
