// This is multi-head latent attention (MLA, DeepSeek-V2 and V3, 2024; docs/mathematics.md#mla): keys and values of all
// heads come from one latent vector of a token, and one short turned key carries positions for all heads.
//   c = norm(y W_DKV) [R wide], or y W_DKV without the norm; t = y W_KR [Dr wide], turned
//   q_h = x' W_Q^h = [n_h | r_h], r_h turned, where x' = x, or norm(x W_DQ) with compressed queries
//   k_h = [c W_UK^h | t], v_h = c W_UV^h; cache: c, t: R + Dr per token
// Whole sequences are computed so. A few queries against a cache read it as it is: W_UK^h is applied to the queries and
// W_UV^h to what is found, and one key [c | t] and one value c serve all heads.
// With several latent vectors (GLA, Zadouri et al., 2025) each serves a group of neighbouring heads, and one t all
// groups: [c_0 | .. | c_g-1 | t] is cached, g R + Dr per token.
#include "headshare/attention/schemes/mla.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "headshare/attention/schemes.h"
#include "headshare/base/error.h"

namespace headshare {
namespace {

constexpr double kLatentNormEpsilon = 1e-6;  // as DeepSeek's models have it

const MlaOptions& mla_options(const AttentionOptions& options) { return options.own.get<MlaOptions>(); }

class MultiHeadLatent : public Scheme {
 public:
  explicit MultiHeadLatent(const AttentionOptions& options)
      : Scheme(options), g_(own().latents), R_(*own().kv_latent), content_(*own().content) {
    const int64_t queries = H() * (content_ + turned_width());
    if (own().query_latent) {
      query_latent_ = projection("query_latent", *own().query_latent);
      query_latent_norm_ = latent_norm("query_latent_norm", *own().query_latent);
      query_ = from_latent("query", *own().query_latent, queries);
    } else {
      query_ = projection("query", queries);
    }
    latent_ = memory_projection("latent", g_ * R_ + turned_width());
    for (int64_t i = 0; own().kv_norm && remembers(options) && i < g_; ++i) {
      latent_norms_.push_back(latent_norm(g_ == 1 ? "latent_norm" : join_text("latent_norm_", i), R_));
    }
    key_ = from_latent("key", R_, H() * content_);
    value_ = from_latent("value", R_, H() * D());
    output_ = output_projection();
  }

  Tensor project_queries(const Tensor& x, int64_t first) const override {
    const Tensor from = query_latent_norm_ == nullptr ? x : query_latent_norm_->forward(query_latent_->forward(x));
    return rotated(split_heads(query_->forward(from), H()), first);  // [B, H, T, Dn + Dr]
  }

  // Takes the form with fewer products. Where what is kept is read, a head maps T queries and what they find, and
  // multiplies g R + Dr and g R numbers for a query and a key. Otherwise it makes S keys and values, and multiplies
  // Dn + Dr and D numbers.
  Form form_for(int64_t T, int64_t S) const override {
    const int64_t made = content_ + D();
    return T < S && T * S * (2 * g_ * R_ - made) < (S - T) * R_ * made ? Form::kFewQueries : Form::kManyQueries;
  }

  Tensor merge(const Posed& posed, const Tensor& heads, const Tensor&) const override {
    const bool is_latent = posed.form == Form::kFewQueries;  // heads are [B, H, T, g R] then
    const Tensor found = is_latent ? own_latent(heads).matmul(maps(value_).transpose(1, 2)) : heads;
    return project_heads(output_, found, /*offset=*/{}, /*live=*/{}, posed);
  }

 protected:
  Memory project_memory(const Tensor& y, int64_t first) const override {
    return {rotated(split_heads(normed(latent_->forward(y)), 1), first)};  // [B, 1, S, g R + Dr]
  }

  HeadProblem pose(const Tensor& queries, const Memory& memory, Form form) const override {
    const Tensor& kept = memory[0];
    const Tensor c = kept.slice(3, 0, g_ * R_);
    if (form == Form::kFewQueries) {
      const Tensor content = at_own_latent(queries.slice(3, 0, content_).matmul(maps(key_)));
      const Tensor query = at::cat({content, queries.slice(3, content_)}, 3);  // [B, H, T, g R + Dr]
      return {.heads = H(), .query = query, .key = kept, .value = c};
    }
    const Tensor turned = kept.slice(3, g_ * R_).expand({-1, H(), -1, -1});
    return {.heads = H(),
            .query = queries,
            .key = at::cat({made(key_, c.squeeze(1)), turned}, 3),
            .value = made(value_, c.squeeze(1))};
  }

  AttentionCost own_cost() const override {
    const int64_t compared = H() * (content_ + turned_width()), Q = own().query_latent.value_or(0);
    const int64_t queries = Q == 0 ? E() * compared : Q * (E() + compared);
    const int64_t made = H() * (content_ + D()), maps = of_memory(E() * g_ * R_) + R_ * made;
    const int64_t rest = of_memory(E() * turned_width()) + H() * D() * E();
    const int64_t norm = own().kv_norm ? of_memory(g_ * R_) : 0;
    // Projections after a norm absorb its weights. Compressed queries, and keys and values without the norm, are no
    // more than those of full rank.
    const int64_t effective_maps = own().kv_norm ? maps : std::min(maps, E() * made);
    return {.parameters = queries + Q + maps + rest + norm,
            .effective = std::min(queries, E() * compared) + effective_maps + rest,
            .cache_elements = g_ * R_ + turned_width()};
  }

 private:
  const MlaOptions& own() const { return mla_options(options()); }

  Norm latent_norm(const std::string& name, int64_t width) {
    return register_module(name, make_norm(NormKind::kRms, width, kLatentNormEpsilon));
  }

  // Returns a projection from a latent vector, which has no bias, as in DeepSeek's models.
  Linear from_latent(const std::string& name, int64_t in, int64_t out) {
    return register_module(name, Linear(in, out, Bias::kNo, Init::normal(options().init_deviation)));
  }

  // Returns the maps of the heads, transposed: [H, width, R].
  Tensor maps(const Linear& linear) const { return linear->weight.view({H(), -1, R_}); }

  // Norms each latent vector of [.., g R + Dr], where they are normed.
  Tensor normed(const Tensor& made) const {
    if (latent_norms_.empty()) return made;
    std::vector<Tensor> parts;
    for (int64_t i = 0; i < g_; ++i) {
      parts.push_back(latent_norms_[static_cast<size_t>(i)]->forward(made.slice(2, i * R_, (i + 1) * R_)));
    }
    parts.push_back(made.slice(2, g_ * R_));
    return at::cat(parts, 2);
  }

  // Makes the keys or the values of all heads, [B, H, S, width], of the latent vectors [B, S, g R].
  Tensor made(const Linear& linear, const Tensor& c) const {
    if (g_ == 1) return split_heads(linear->forward(c), H());
    std::vector<Tensor> groups;
    for (int64_t i = 0; i < g_; ++i) {
      const Tensor weight = linear->weight.chunk(g_, 0)[static_cast<size_t>(i)];
      groups.push_back(split_heads(linear_map(c.slice(2, i * R_, (i + 1) * R_), weight), H() / g_));
    }
    return at::cat(groups, 1);
  }

  // Maps [B, H, T, R] to [B, H, T, g R]: each head meets its own latent vector, and zeros meet the others, so that one
  // key serves all heads.
  Tensor at_own_latent(const Tensor& x) const {
    if (g_ == 1) return x;
    const Tensor place = at::eye(g_, x.options()).view({1, g_, 1, 1, g_, 1});  // 1 at the group's own
    return (x.unflatten(1, {g_, H() / g_}).unsqueeze(4) * place).flatten(/*start_dim=*/4).flatten(1, 2);
  }

  // Maps averages of all latent vectors, [B, H, T, g R], to those of each head's own [B, H, T, R].
  Tensor own_latent(const Tensor& averages) const {
    if (g_ == 1) return averages;
    const Tensor all = averages.unflatten(3, {g_, R_}).unflatten(1, {g_, H() / g_});  // [B, g, H / g, T, g, R]
    return all.diagonal(0, 1, 4).permute({0, 4, 1, 2, 3}).flatten(1, 2);
  }

  int64_t g_, R_, content_;
  Linear query_latent_ = nullptr, query_ = nullptr, latent_ = nullptr, key_ = nullptr, value_ = nullptr,
         output_ = nullptr;
  Norm query_latent_norm_;          // null where queries are not compressed
  std::vector<Norm> latent_norms_;  // one for each latent vector, or none
};

}  // namespace

namespace {
namespace mla {

Fields fields(MlaOptions& o) {
  const auto width = [](const std::string& name, std::optional<int64_t>* target, const std::string& help,
                        const std::string& alias) {
    return field(name, target, help, {.min = 1, .max = 1 << 20, .aliases = {alias}, .since = 14});
  };
  return {
      field("kv-latents", &o.latents,
            "latent vectors of mla, each of which serves a group of heads (GLA); a divisor of heads",
            {.min = 1, .max = 1 << 16, .aliases = {"latents"}, .since = 15}),
      width(
          "kv-latent-width", &o.kv_latent,
          "width of a latent vector that keys and values of mla come from; auto: 4 x head-width, at most d-model / 2, "
          "divided by --kv-latents",
          "kv-lora-rank"),
      width("query-latent-width", &o.query_latent,
            "width of the latent vector that queries of mla come from; auto: they come from the input", "q-lora-rank"),
      width("content-head-width", &o.content,
            "width in which a head of mla compares what does not turn; auto: head-width", "qk-nope-head-dim"),
      width("rotary-head-width", &o.turned,
            "width of the one key of mla that rotary positions turn, for all heads; auto: head-width / 2, to an even "
            "number",
            "qk-rope-head-dim"),
      field("kv-latent-norm", &o.kv_norm,
            "the latent vector of mla is normed; false: keys and values are linear in the input, as those of models "
            "that `convert` makes",
            {.since = 15}),
      field("layer-kv-latent-widths", &o.layer_kv_latents,
            "kv-latent-width of each layer (of each --layer-groups), where they differ; empty: --kv-latent-width",
            {.min = 1, .max = 1 << 20, .since = 15})};
}

void set_defaults(AttentionOptions* options) {
  MlaOptions& own = options->own.get<MlaOptions>();
  const int64_t D = *options->head_width;
  if (!own.content) own.content = D;
  if (!own.layer_kv_latents.empty()) {
    const int64_t widest = std::ranges::max(own.layer_kv_latents);
    HS_CHECK(own.kv_latent.value_or(widest) == widest, "kv-latent-width ", *own.kv_latent,
             " stands beside layer-kv-latent-widths, of which the largest is ", widest,
             "; leave --kv-latent-width out");
    own.kv_latent = widest;
  }
  if (!own.kv_latent) own.kv_latent = std::max<int64_t>(1, std::min(4 * D, options->d_model / 2) / own.latents);
  if (options->rotary && !own.turned) own.turned = (D + 3) / 4 * 2;
  if (!options->scale) {
    const int64_t compared = *own.content + own.turned.value_or(0);
    options->scale = 1 / std::sqrt(static_cast<double>(compared));
  }
}

int64_t turned_width(const AttentionOptions& o) { return mla_options(o).turned.value_or(0); }
int64_t whole_width(const AttentionOptions& o) { return *mla_options(o).content + turned_width(o); }

// A latent vector as wide as all that comes from it, or as what it comes from, compresses nothing.
std::string why_not_latent(const std::string& option, int64_t width, int64_t from, int64_t to) {
  const int64_t full = std::min(from, to);
  if (width <= full) return "";
  return join_text(option, " must be at most ", full, ", the full rank of a map from d-model ", from, " to the ", to,
                   " dimensions that come from it, not ", width, "; choose a lower --", option);
}

std::string why_not(const AttentionOptions& o) {
  const MlaOptions& own = mla_options(o);
  if (o.qk_norm) return "mla norms its latent vectors, and not queries and keys; leave --qk-norm out";
  if (own.latents < 1 || o.heads % own.latents != 0) {
    return join_text("kv-latents must divide heads, so that equally many read each latent vector: ", o.heads,
                     " heads, ", own.latents, " latent vectors; set --kv-latents to a divisor of ", o.heads);
  }
  if (own.turned && !o.rotary) {
    return "rotary-head-width is about rotary positions; leave it out, or set --positions rotary";
  }
  if (own.turned && *own.turned % 2 != 0) {
    return join_text("rotary-head-width must be even, because positions turn pairs, not ", *own.turned,
                     "; change --rotary-head-width");
  }
  const int64_t made = o.heads / own.latents * (*own.content + *o.head_width);
  const std::string widths = own.layer_kv_latents.empty() ? "kv-latent-width" : "layer-kv-latent-widths";
  const std::string reason = why_not_latent(widths, *own.kv_latent, o.d_model, made);
  if (!reason.empty() || !own.query_latent) return reason;
  return why_not_latent("query-latent-width", *own.query_latent, o.d_model, o.heads * whole_width(o));
}

std::string sizes(const AttentionOptions& o) {
  const MlaOptions& own = mla_options(o);
  std::string text = own.latents == 1 ? "" : join_text(own.latents, " latent vectors, ");
  text += own.layer_kv_latents.empty()
              ? join_text("latent width ", *own.kv_latent)
              : join_text("latent widths ", std::ranges::min(own.layer_kv_latents), " to ", *own.kv_latent);
  if (!own.kv_norm) text += " without a norm";
  if (own.query_latent) text += join_text(", of queries ", *own.query_latent);
  if (own.turned) text += join_text(", turned ", *own.turned);
  return text;
}

SchemeOptions own_options() {
  SchemeOptions options = scheme_options<MlaOptions>(fields);
  options.leave_rotary_out = [](AttentionOptions* o) { o->own.get<MlaOptions>().turned.reset(); };
  return options;
}

}  // namespace mla
}  // namespace

SchemeRecord mla_scheme() {
  return {.name = "mla",
          .sentence = "keys and values of all heads come from one latent vector",
          .paper = "DeepSeek-AI, 2024",
          .make = make_as<MultiHeadLatent>,
          .options = mla::own_options(),
          .set_defaults = mla::set_defaults,
          .why_not = mla::why_not,
          .compared_width = mla::whole_width,
          .rotated_width = mla::turned_width,
          .sizes = mla::sizes,
          .since = 14};
}

}  // namespace headshare
