// This header holds the shared projections of SHA, MHE-ADD and MHE-MUL: one query, key and value map of width D and a
// full output map O [E, H D]. Their cache holds k, v: 2 D per token.
#pragma once

#include "headshare/attention/scheme.h"
#include "headshare/attention/schemes/mhe_options.h"

namespace headshare {

class SingleHead : public Scheme {
 public:
  explicit SingleHead(const AttentionOptions& options)
      : Scheme(options),
        query_(projection("query", D())),
        key_(key_projection("key", D())),
        value_(memory_projection("value", D())),
        output_(output_projection()) {}

 protected:
  // Returns k, v: [B, 1, S, D]; the key is unrotated, for schemes that change it per head before rotating.
  Memory shared_memory(const Tensor& y) const {
    return {normed_key(split_heads(key_->forward(y), 1)), split_heads(values_of(value_, y), 1)};
  }

  int64_t shared_parameters() const { return E() * D() + of_memory(2 * E() * D()) + E() * H() * D(); }

  // Returns a parameter [H, D], one embedding a head.
  Tensor head_embedding(const std::string& name, Role role) {
    return declare(name, {H(), D()}, Init::normal(*options().own.get<MheOptions>().deviation), Decay::kNo, role);
  }

  Linear query_, key_, value_, output_;
};

}  // namespace headshare
