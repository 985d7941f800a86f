// This scheme shares key and value: one map serves a head as key and as value (docs/mathematics.md#skv).
//   q_h = x W_Q^h, k_h = v_h = y W_KV^h; cache: k = v stored once: H D per token, or g D where groups of heads share
// Rotary positions need a decision, because they turn keys: values may stay as they are (Gemma 4, 2026), turn as keys
// do and turn back once they are averaged (DeepSeek-V4, 2026), or leave the turned part of the key to a map of its own
// (grouped-tied attention, GTA, Zadouri et al., 2025).
// With `shared_qk` queries and keys share a map instead: q_h = x W_QK^h, k_h = y W_QK^h; cache 2 H D.
#include <ATen/ATen.h>

#include "headshare/attention/schemes.h"
#include "headshare/base/error.h"

namespace headshare {
namespace {

// This names what turns under rotary positions.
enum class SkvRotary {
  kKey,      // keys; values do not: k_j = R_j u_j, v_j = u_j; cache: u
  kCounter,  // both, and what is found turns back: k_j = v_j = R_j u_j, out_i = R_-i sum; cache: R_j u_j
  kSplit,  // the last dimensions of keys, one map of all heads: k_j = [u_j | R_j t_j], v_j = u_j whole; cache: u, R_j t
};

struct SkvOptions {
  bool shared_qk = false;                // share queries and keys instead of keys and values
  std::optional<int64_t> kv_heads = {};  // g; default H
  SkvRotary rotary = SkvRotary::kKey;
};

const SkvOptions& skv_options(const AttentionOptions& options) { return options.own.get<SkvOptions>(); }

class SharedKeyValue : public Scheme {
 public:
  explicit SharedKeyValue(const AttentionOptions& options)
      : Scheme(options,
               skv_options(options).rotary == SkvRotary::kKey ? KeysNormed::kWhenRead : KeysNormed::kBeforeKept),
        query_(projection("query", H() * D())),
        key_value_(memory_projection("key_value", g() * D())),
        output_(output_projection()) {
    if (rotary() == SkvRotary::kSplit) turned_key_ = memory_projection("turned_key", turned_width());
  }

  Tensor project_queries(const Tensor& x, int64_t first) const override {
    return rotated(normed_query(split_heads(query_->forward(x), H())), first);  // [B, H, T, D]
  }

  Tensor merge(const Posed& posed, const Tensor& heads, const Tensor& live) const override {
    if (rotary() == SkvRotary::kCounter) {
      const int64_t first = posed.problem.key.size(2) - heads.size(2);  // position of the first query
      return project_heads(output_, turned_back(heads, first), /*offset=*/{}, /*live=*/{}, posed);
    }
    Tensor bias = value_offset(key_value_);
    if (bias.defined()) bias = bias.repeat_interleave(H() / g(), 0);
    return project_heads(output_, heads, bias, live, posed);
  }

 protected:
  // Returns u [B, g, S, D], turned where values turn; under kSplit also the turned key [B, 1, S, turned].
  Memory project_memory(const Tensor& y, int64_t first) const override {
    switch (rotary()) {
      case SkvRotary::kKey:  // values must stay as they are, so keys are normed and turned when they are read
        return {split_heads(values_of(key_value_, y), g())};
      case SkvRotary::kCounter:  // a bias turns with its token, so that it belongs to the values
        return {rotated(normed_key(split_heads(key_value_->forward(y), g())), first)};
      case SkvRotary::kSplit:
        return {split_heads(values_of(key_value_, y), g()), rotated(split_heads(turned_key_->forward(y), 1), first)};
    }
    throw Error("unknown rotary positions of skv");
  }

  HeadProblem pose(const Tensor& queries, const Memory& memory, Form) const override {
    return {.heads = H(), .query = queries, .key = keys(memory), .value = memory[0]};
  }

  AttentionCost own_cost() const override {
    const int64_t turned = rotary() == SkvRotary::kSplit ? turned_width() : 0;
    const int64_t parameters = 2 * E() * H() * D() + of_memory(E() * (g() * D() + turned));
    return {.parameters = parameters, .effective = parameters, .cache_elements = g() * D() + turned};
  }

 private:
  int64_t g() const { return skv_options(options()).kv_heads.value_or(H()); }
  SkvRotary rotary() const { return skv_options(options()).rotary; }

  Tensor keys(const Memory& memory) const {
    if (rotary() == SkvRotary::kCounter) return memory[0];
    if (rotary() == SkvRotary::kSplit) {
      return at::cat({memory[0].slice(3, 0, D() - turned_width()), memory[1].expand({-1, g(), -1, -1})}, 3);
    }
    Tensor keys = memory[0];
    const Tensor bias = value_offset(key_value_);
    if (key_bias_matters(options()) && bias.defined()) keys = keys + bias.unsqueeze(1);
    return rotated(normed_key(keys), /*first=*/0);
  }

  // Turns x [B, H, T, D] back by the positions first, first + 1, ... and takes out the factor on cosines and sines that
  // values got. Pairs turn back when their conjugates turn.
  Tensor turned_back(const Tensor& x, int64_t first) const {
    const double factor = options().rotary_scaling.attention_factor.value_or(1);
    const Tensor conjugate = at::ones({D()}, x.options()), undone = at::ones({D()}, x.options());
    undone.slice(0, D() - turned_width()).fill_(1 / (factor * factor));
    conjugate.slice(0, D() - turned_width() / 2).fill_(-1);
    return rotated(x * conjugate, first) * (conjugate * undone);
  }

  Linear query_, key_value_, output_;
  Linear turned_key_ = nullptr;  // of kSplit
};

class SharedQueryKey : public Scheme {
 public:
  explicit SharedQueryKey(const AttentionOptions& options)
      : Scheme(options),
        query_key_(projection("query_key", H() * D())),
        value_(projection("value", H() * D())),
        output_(output_projection()) {}

  Tensor project_queries(const Tensor& x, int64_t first) const override {
    return rotated(normed_query(split_heads(query_key_->forward(x), H())), first);  // [B, H, T, D]
  }

  Tensor merge(const Posed& posed, const Tensor& heads, const Tensor& live) const override {
    return project_heads(output_, heads, value_offset(value_), live, posed);
  }

 protected:
  Memory project_memory(const Tensor& y, int64_t first) const override {
    return {rotated(normed_key(split_heads(query_key_->forward(y), H())), first),
            split_heads(values_of(value_, y), H())};
  }

  HeadProblem pose(const Tensor& queries, const Memory& memory, Form) const override {
    return {.heads = H(), .query = queries, .key = memory[0], .value = memory[1]};
  }

  AttentionCost own_cost() const override {
    const int64_t parameters = 3 * E() * H() * D();
    return {.parameters = parameters, .effective = parameters, .cache_elements = 2 * H() * D()};
  }

 private:
  Linear query_key_, value_, output_;
};

}  // namespace

namespace {
namespace skv {

const EnumNames<SkvRotary>& rotary_names() {
  static const EnumNames<SkvRotary> names = {
      {SkvRotary::kKey, "key"}, {SkvRotary::kCounter, "counter"}, {SkvRotary::kSplit, "split"}};
  return names;
}

Fields fields(SkvOptions& o) {
  return {field("shared-qk", &o.shared_qk, "skv shares queries and keys instead of keys and values"),
          field("kv-heads", &o.kv_heads,
                "maps of skv that are key and value at once, each for a group of heads; auto: one for each head",
                {.min = 1, .max = 1 << 16, .since = 15}),
          field("skv-rotary", &o.rotary,
                "rotary positions of skv turn keys alone (Gemma 4), keys and values, and what is found back (counter, "
                "DeepSeek-V4), or a part of the keys that is no value and has a map of its own (split, GTA)",
                rotary_names(), {.since = 15})};
}

std::shared_ptr<Scheme> make(const AttentionOptions& options) {
  if (skv_options(options).shared_qk) return std::make_shared<SharedQueryKey>(options);
  return std::make_shared<SharedKeyValue>(options);
}

// Half of a split key turns where nothing else is said, to an even number.
void set_defaults(AttentionOptions* options) {
  const bool is_split = options->rotary && skv_options(*options).rotary == SkvRotary::kSplit;
  if (is_split && !options->rotary_dimensions) options->rotary_dimensions = (*options->head_width + 3) / 4 * 2;
}

std::string why_not_split(const AttentionOptions& o) {
  if (o.qk_norm) {
    return "a key of skv with --skv-rotary split has two parts, which --qk-norm would have to norm as one; leave one "
           "of "
           "the two out";
  }
  if (*o.rotary_dimensions < *o.head_width) return "";
  return join_text("--skv-rotary split leaves a part of each key to the values: of ", *o.head_width,
                   " dimensions of a head fewer have to turn than ", *o.rotary_dimensions,
                   "; choose a lower --rotary-dimensions or a higher --head-width");
}

std::string why_not(const AttentionOptions& o) {
  const SkvOptions& own = skv_options(o);
  const std::string rotary = enum_name(rotary_names(), own.rotary);
  if (own.kv_heads && o.heads % *own.kv_heads != 0) {
    return join_text("kv-heads must divide heads: ", o.heads, " heads, ", *own.kv_heads,
                     " maps; set --kv-heads to a divisor of ", o.heads);
  }
  if (own.shared_qk && own.kv_heads) {
    return "kv-heads is about maps that are key and value, and --shared-qk shares queries and keys instead; leave one "
           "of the two out";
  }
  if (own.shared_qk && o.memory != MemoryUse::kOwn) {
    return "--shared-qk shares a layer's queries and keys, and layers with --share-kv-layers have no keys of their "
           "own; leave one of the two out";
  }
  if (own.rotary == SkvRotary::kKey) return "";
  if (own.shared_qk) {
    return "--skv-rotary " + rotary +
           " is about keys that are values, which --shared-qk has not; leave one of the two out";
  }
  if (!o.rotary)
    return "--skv-rotary " + rotary + " is about rotary positions; leave it out, or set --positions rotary";
  return own.rotary == SkvRotary::kSplit ? why_not_split(o) : "";
}

std::string sizes(const AttentionOptions& o) {
  const SkvOptions& own = skv_options(o);
  std::string text = own.kv_heads ? join_text(*own.kv_heads, " key/value heads") : "";
  if (own.rotary != SkvRotary::kKey) {
    text += (text.empty() ? "" : ", ") + ("rotary " + enum_name(rotary_names(), own.rotary));
  }
  return text;
}

SchemeOptions own_options() {
  SchemeOptions options = scheme_options<SkvOptions>(fields);
  options.leave_rotary_out = [](AttentionOptions* o) { o->own.get<SkvOptions>().rotary = SkvRotary::kKey; };
  return options;
}

}  // namespace skv
}  // namespace

SchemeRecord skv_scheme() {
  return {.name = "skv",
          .sentence = "a head's keys are its values",
          .paper = "Xue and Aletras, 2023",
          .make = skv::make,
          .options = skv::own_options(),
          .set_defaults = skv::set_defaults,
          .why_not = skv::why_not,
          .sizes = skv::sizes};
}

}  // namespace headshare
