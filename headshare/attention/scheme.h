// A scheme says how heads share projections. It has five parts: what the queries are, what the
// memory side keeps (and a cache stores), how the two pose a problem to the attention core, how the
// heads merge into the output, and what all that costs. The core does not know which scheme runs.
#pragma once

#include <memory>

#include "headshare/attention/kv_cache.h"
#include "headshare/attention/kv_shift.h"
#include "headshare/attention/options.h"
#include "headshare/ops/head_attention/head_attention.h"
#include "headshare/ops/linear.h"
#include "headshare/ops/norm.h"

namespace headshare {

// This is the exact cost of one attention sub-layer (docs/mathematics.md#overview).
struct AttentionCost {
  int64_t parameters = 0;      // without biases: what the MHE paper counts
  int64_t effective = 0;       // without parameters that others can absorb, given the options
  int64_t biases = 0;          // of the projections
  int64_t cache_elements = 0;  // per token
};

// A scheme may pose the same attention in two forms. Most schemes have one form, whatever form is named.
enum class Form {
  kManyQueries,  // trains and scores whole sequences
  kFewQueries,   // decodes against a long memory: what would expand the memory is applied to the queries instead
};

// This is a problem for the core, and the form that its solution has to be merged in.
struct Posed {
  HeadProblem problem;
  Form form = Form::kManyQueries;
  Tensor gate = {};  // Scheme::gate() of what the queries are projected from
};

// The norm of qk_norm acts on keys before a cache stores them, or on keys that are made of the memory each time.
enum class KeysNormed { kBeforeKept, kWhenRead };

// A layer that borrows its memory (AttentionOptions::memory) has none of the parameters that remember() alone reads:
// the pointers to these are null. It has the parameters that read the memory.
class Scheme : public Layer {
 public:
  explicit Scheme(AttentionOptions resolved, KeysNormed keys = KeysNormed::kBeforeKept);

  // Projects x [B, T, E], whose first token stands at position `first`, to queries [B, Hq, T, Dk].
  virtual Tensor project_queries(const Tensor& x, int64_t first) const = 0;

  // Returns what a cache stores of y [B, S, E]: tensors [B, heads, S, width]. Throws Error where the memory is
  // borrowed.
  Memory remember(const Tensor& y, int64_t first) const;

  // Returns the form for T queries against S keys. It depends on nothing else, so that a model computes the same bits
  // with gradients and without.
  virtual Form form_for(int64_t T, int64_t S) const;

  // Poses queries and the whole memory (keys at positions 0 .. S - 1) as a problem for the core, in the form of
  // form_for(). `visible_keys` [B, S] is that of the mask: padding has no say in the token after it.
  Posed posed(const Tensor& queries, Memory memory, const Tensor& visible_keys = {}) const;
  // Poses the same problem in the form that the caller names.
  Posed posed(const Tensor& queries, Memory memory, Form form, const Tensor& visible_keys = {}) const;

  // Returns what multiplies the heads' elements for x [B, T, E], each between 0 and 1: [B, T, H] or [B, T, H D];
  // undefined without an output gate.
  Tensor gate(const Tensor& x) const;

  // Merges the solution of a posed problem, whose gate is set where the layer has one, heads [B, H or 1, T, Dv] -> [B,
  // T, E]. `live` [B or 1, T] (undefined: all) marks the queries that saw a key: value biases and embeddings are added
  // to those only, after averaging and dropout.
  virtual Tensor merge(const Posed& posed, const Tensor& heads, const Tensor& live) const = 0;

  AttentionCost cost() const;

  const AttentionOptions& options() const { return options_; }

 protected:
  virtual Memory project_memory(const Tensor& y, int64_t first) const = 0;
  // Keys and values may be the same part of the memory, or slices of it: nothing is copied for the core.
  virtual HeadProblem pose(const Tensor& queries, const Memory& memory, Form form) const = 0;
  virtual AttentionCost own_cost() const = 0;  // biases and content bias left out; the cache as if it were the layer's

  int64_t E() const { return options_.d_model; }
  int64_t H() const { return options_.heads; }
  int64_t D() const { return *options_.head_width; }
  double scale() const { return *options_.scale; }
  // Tells whether heads differ: a content bias, ALiBi or sinks set them apart even where one query and key serve all of
  // them.
  bool heads_differ() const { return options_.content_bias || options_.alibi || options_.sinks; }
  // Tells whether a content bias is a parameter of this layer.
  bool has_content_bias() const { return content_bias_.defined(); }
  bool is_gated() const { return options_.gate != OutputGate::kNone; }
  // Tells whether what is merged differs: gates set heads apart that found the same.
  bool outputs_differ() const { return heads_differ() || is_gated(); }

  // Returns a projection from the model width, with the options' bias and start.
  Linear projection(const std::string& name, int64_t out);
  // Returns the output projection O, H Dv -> E.
  Linear output_projection();
  // Returns a projection that project_memory() alone reads; null where the memory is borrowed.
  Linear memory_projection(const std::string& name, int64_t out);
  // Returns such a projection of keys. Its bias is inert unless keys are rotated: the projection then keeps it unused.
  Linear key_projection(const std::string& name, int64_t out);
  // Returns `parameters`, which project_memory() alone reads, or 0 where the memory is borrowed.
  int64_t of_memory(int64_t parameters) const { return remembers(options_) ? parameters : 0; }

  // Splits x [B, T, heads * width] -> [B, heads, T, width].
  static Tensor split_heads(const Tensor& x, int64_t heads);
  // Joins x [B, heads, T, width] -> [B, T, heads * width].
  static Tensor join_heads(const Tensor& x);
  // Applies the norms of the options' qk_norm over the last axis; returns x itself without qk_norm. Keys and queries
  // are normed as they are projected: what a head adds or multiplies by comes after.
  Tensor normed_query(const Tensor& x) const;
  Tensor normed_key(const Tensor& x) const;
  // Counts the weights of the norms of query and key that nothing else can absorb; `width` is that of one norm. Where
  // nothing turns, scores depend on the product of the two norms' weights alone, so that one of them counts, and both
  // count for the dimensions that turn.
  virtual int64_t effective_norm_weights(int64_t width) const { return width + turned_width_; }

  // Rotates when the options say so: the last dimensions of each vector, as many as turned_width() says.
  Tensor rotated(const Tensor& x, int64_t first) const;
  // Rotates by the frequencies of `period` dimensions again and again.
  Tensor rotated(const Tensor& x, int64_t first, int64_t period) const;
  // Counts the dimensions that rotary positions turn (SchemeRecord::rotated_width); 0 without such positions.
  int64_t turned_width() const { return turned_width_; }
  // Returns what a cache keeps of a key and a value: the key turned, unless it meets that of the token before when it
  // is read (posed() does so).
  Memory kept(const Tensor& key, const Tensor& value, int64_t first) const;
  // Declares the shares of AttentionOptions::kv_shift, where it is set, for so many heads of keys and of values.
  void declare_shift(int64_t key_heads, int64_t value_heads);
  // A value bias is added after averaging. Where values_have_bias(), they have it before, and value_offset(), [maps,
  // D], is undefined.
  Tensor values_of(const Linear& linear, const Tensor& y) const;
  Tensor value_offset(const Linear& linear) const;
  // Returns heads [B, H, T, Dv] + offset [H or 1, Dv] at live queries; an undefined offset adds nothing.
  static Tensor add_value_offset(const Tensor& heads, const Tensor& offset, const Tensor& live);
  // Returns the output projection of what the heads found: heads [B, H, T, D], plus an offset as above, times the gate
  // of the problem, where there is one -> [B, T, E]. With gradients the offset and the gate keep no second copy of the
  // heads.
  Tensor project_heads(const Linear& output, const Tensor& heads, const Tensor& offset, const Tensor& live,
                       const Posed& posed) const;

 private:
  bool meets_token_before() const { return options_.kv_shift || options_.key_offset; }
  Memory with_token_before(const Memory& memory, const Tensor& visible_keys) const;

  AttentionOptions options_;
  int64_t turned_width_;
  Tensor content_bias_;         // u: [H, E]
  Tensor sinks_;                // [H], undefined without sinks
  Linear gate_ = nullptr;       // E -> H or H D; null without a gate
  KvShift shift_;               // null without a shift
  Norm query_norm_, key_norm_;  // null without qk_norm
};

// Makes the scheme that the options name. `options` must be resolved.
std::shared_ptr<Scheme> make_scheme(const AttentionOptions& resolved);

// Returns a copy that computes in double, where the scheme's parameters are, and not in training.
std::shared_ptr<Scheme> in_double(const Scheme& scheme);
// Returns the same parameters under other options, resolved, which ask for the same parameters.
std::shared_ptr<Scheme> in_double(const Scheme& scheme, const AttentionOptions& options);

}  // namespace headshare
