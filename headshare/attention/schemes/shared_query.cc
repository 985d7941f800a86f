// In this scheme heads share the query, too: there is one query space, one key and one value, and only a map of each
// head on the query sets heads apart (docs/mathematics.md#shared_query).
//   q_h = f_h(x W_Q), k = y W_K, v = y W_V; cache: rotated k, v: 2 D per token
// The maps f_h lead from single-head attention to multi-query attention: none at all is sha, a full matrix is
// multi-matrix factorization attention (MFA, Hu et al., 2024) without the norm of its queries. The map acts before
// positions turn the query, so that one turned key serves all heads whatever the map is. MHE of 2023 maps keys, too.
#include "headshare/attention/schemes/shared_query.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "headshare/attention/schemes.h"
#include "headshare/attention/schemes/complex_pairs.h"
#include "headshare/base/error.h"

namespace headshare {
namespace {

class SharedQuery : public Scheme {
 public:
  explicit SharedQuery(const AttentionOptions& options) : Scheme(options), query_(projection("query", query_width())) {
    declare_map();
    key_ = key_projection("key", D());
    value_ = memory_projection("value", D());
    output_ = output_projection();
    declare_shift(1, 1);
  }

  Tensor project_queries(const Tensor& x, int64_t first) const override {
    const Tensor query = normed_query(split_heads(query_->forward(x), 1));  // [B, 1, T, C]
    return is_folded() ? query : rotated(mapped(query), first);             // [B, 1 or H, T, D]
  }

  Tensor merge(const Posed& posed, const Tensor& heads, const Tensor& live) const override {
    return project_heads(output_, heads, value_offset(value_), live, posed);
  }

 protected:
  Memory project_memory(const Tensor& y, int64_t first) const override {
    return kept(normed_key(split_heads(key_->forward(y), 1)), split_heads(values_of(value_, y), 1), first);
  }

  HeadProblem pose(const Tensor& queries, const Memory& memory, Form) const override {
    HeadProblem problem = {.heads = H(), .query = queries, .key = memory[0], .value = memory[1]};
    if (is_folded()) problem.query_shift = map_;
    return problem;
  }

  // Maps with a factor for each dimension absorb the query's, and where nothing turns the key's too.
  int64_t effective_norm_weights(int64_t width) const override {
    const bool scales =
        own().map == QueryMap::kDiagonal || own().map == QueryMap::kBlocks || own().map == QueryMap::kFull;
    return scales ? turned_width() : Scheme::effective_norm_weights(width);
  }

  AttentionCost own_cost() const override {
    const int64_t C = query_width(), shared = of_memory(2 * E() * D()) + E() * H() * D();
    int64_t map = map_.defined() ? map_.numel() : 0;
    if (inner_) map += inner_->weight.numel();
    return {.parameters = shared + E() * C + map,
            .effective = shared + effective_queries(E() * C + map),
            .cache_elements = 2 * D()};
  }

 private:
  const SharedQueryOptions& own() const { return options().own.get<SharedQueryOptions>(); }
  int64_t query_width() const { return own().width.value_or(D()); }
  int64_t r() const { return *own().rank; }

  // A bias that nothing turns is a score per (head, key): all heads share one matrix of scores.
  bool is_folded() const { return own().map == QueryMap::kBias && !options().rotary; }

  // Heads start with queries as large as the shared one, and different. Biases and real factors start where those of
  // MHE do (docs/design/021-where-head-embeddings-start.md).
  void declare_map() {
    const auto start = [](double of) { return Init::normal(1 / std::sqrt(of)); };
    const auto width = static_cast<double>(query_width());
    switch (own().map) {
      case QueryMap::kIdentity:
        return;
      case QueryMap::kBias:
        map_ = declare("query_map", {H(), D()}, Init::normal(0.02), Decay::kNo);
        return;
      case QueryMap::kDiagonal:
        map_ = declare("query_map", {H(), D()}, Init::normal(0.5), Decay::kNo);
        return;
      case QueryMap::kComplex:
        map_ = declare("query_map", {H(), D()}, start(2), Decay::kNo);
        return;
      case QueryMap::kBlocks:
        map_ = declare("query_map", {H(), 2, D()}, start(2), Decay::kNo);
        return;
      case QueryMap::kLowRank:
        inner_ = register_module("query_inner", Linear(D(), H() * r(), Bias::kNo, start(width)));
        map_ = declare("query_map", {H(), r(), D()}, start(static_cast<double>(r())));
        return;
      case QueryMap::kFull:
        map_ = declare("query_map", {H() * D(), query_width()}, start(width));
    }
  }

  // Maps the shared query [B, 1, T, C] to the heads' [B, H, T, D].
  Tensor mapped(const Tensor& q) const {
    switch (own().map) {
      case QueryMap::kIdentity:
        return q;
      case QueryMap::kBias:
        return q + map_.unsqueeze(1);
      case QueryMap::kDiagonal:
        return q * (map_ + 1).unsqueeze(1);
      case QueryMap::kComplex:
        return complex_product(q, map_.unsqueeze(1));
      case QueryMap::kBlocks: {
        // The rows of a matrix are what makes the first and the second dimension of a pair.
        const Tensor first = map_.select(1, 0).unsqueeze(1), second = map_.select(1, 1).unsqueeze(1);  // [H, 1, D]
        return at::cat({real_half(q) * real_half(first) + imaginary_half(q) * imaginary_half(first),
                        real_half(q) * real_half(second) + imaginary_half(q) * imaginary_half(second)},
                       -1);
      }
      case QueryMap::kLowRank:
        return q + split_heads(inner_->forward(q.squeeze(1)), H()).matmul(map_);
      case QueryMap::kFull:
        return split_heads(linear_map(q.squeeze(1), map_), H());
    }
    throw Error("unknown map of queries");
  }

  // Counts the numbers in W_Q and the maps that nothing else can absorb, of so many: no more than those of full maps.
  int64_t effective_queries(int64_t all) const {
    switch (own().map) {
      case QueryMap::kBias:  // a content bias absorbs what does not turn
        return E() * D() + H() * (has_content_bias() ? turned_width() : D());
      case QueryMap::kLowRank:
        return std::min(all, E() * D() + H() * D() * D());
      case QueryMap::kFull:
        return std::min(all, E() * H() * D());
      default:
        return all;
    }
  }

  Linear query_, inner_ = nullptr;  // E -> C; the U of all heads, D -> H r
  Tensor map_;
  Linear key_ = nullptr, value_ = nullptr, output_ = nullptr;
};

}  // namespace

const EnumNames<QueryMap>& query_map_names() {
  static const EnumNames<QueryMap> names = {{QueryMap::kIdentity, "identity"}, {QueryMap::kBias, "bias"},
                                            {QueryMap::kDiagonal, "diagonal"}, {QueryMap::kComplex, "complex"},
                                            {QueryMap::kBlocks, "blocks"},     {QueryMap::kLowRank, "low_rank"},
                                            {QueryMap::kFull, "full"}};
  return names;
}

namespace {
namespace shared_query {

std::string name_of(QueryMap map) { return enum_name(query_map_names(), map); }

Fields fields(SharedQueryOptions& o) {
  return {
      field(
          "query-map", &o.map,
          "the map of each head of shared_query on the query that heads share: none, a vector that is added or "
          "multiplied, complex numbers or 2 x 2 blocks on pairs of dimensions, a sum with a product of low rank, or a "
          "full matrix (MFA)",
          query_map_names(), {.since = 14}),
      field("query-rank", &o.rank, "rank of --query-map low_rank; auto: a quarter of the head width",
            {.min = 1, .max = 1 << 16, .since = 14}),
      field("query-width", &o.width, "width of the query that heads share under --query-map full; auto: head-width",
            {.min = 1, .max = 1 << 20, .since = 14})};
}

// One query, key and value without maps is sha.
std::shared_ptr<Scheme> make(const AttentionOptions& options) {
  if (options.own.get<SharedQueryOptions>().map == QueryMap::kIdentity) return scheme_record("sha").make(options);
  return std::make_shared<SharedQuery>(options);
}

void set_defaults(AttentionOptions* options) {
  SharedQueryOptions& own = options->own.get<SharedQueryOptions>();
  if (own.map == QueryMap::kLowRank && !own.rank) own.rank = std::max<int64_t>(1, *options->head_width / 4);
}

std::string why_not_pairs(const AttentionOptions& o) {
  const QueryMap map = o.own.get<SharedQueryOptions>().map;
  if (map != QueryMap::kComplex && map != QueryMap::kBlocks) return "";
  if (*o.head_width % 2 != 0) {
    return join_text("--query-map ", name_of(map), " maps pairs of dimensions, so head-width must be even, not ",
                     *o.head_width, "; change --head-width or choose --query-map diagonal");
  }
  if (!o.rotary_dimensions) return "";
  return join_text("--query-map ", name_of(map),
                   " maps the pairs that rotary positions turn in whole heads, and not in "
                   "only some rotary-dimensions; leave --rotary-dimensions out or choose another --query-map");
}

std::string why_not(const AttentionOptions& o) {
  const SharedQueryOptions& own = o.own.get<SharedQueryOptions>();
  const int64_t D = *o.head_width;
  if (own.rank && own.map != QueryMap::kLowRank) {
    return join_text("query-rank is the rank of --query-map low_rank, not of ", name_of(own.map), "; leave it out");
  }
  if (own.rank && *own.rank > D) {
    return join_text("query-rank must be at most ", D, ", the head-width, not ", *own.rank,
                     "; choose a lower --query-rank, or --query-map full");
  }
  if (own.width && own.map != QueryMap::kFull) {
    return join_text("query-width is about --query-map full, and not about ", name_of(own.map), "; leave it out");
  }
  if (own.width && *own.width > o.d_model) {
    return join_text("query-width must be at most ", o.d_model, ", the d-model that queries come from, not ",
                     *own.width, "; choose a lower --query-width");
  }
  if (own.width && *own.width != D && o.qk_norm) {
    return join_text("--qk-norm norms queries and keys in the same width, but query-width is ", *own.width,
                     " and head-width ", D, "; leave one of --qk-norm and --query-width out");
  }
  return why_not_pairs(o);
}

std::string sizes(const AttentionOptions& o) {
  const SharedQueryOptions& own = o.own.get<SharedQueryOptions>();
  std::string text = "query map " + name_of(own.map);
  if (own.rank) text += join_text(" of rank ", *own.rank);
  if (own.width) text += join_text(", query width ", *own.width);
  return text;
}

}  // namespace shared_query
}  // namespace

SchemeRecord shared_query_scheme() {
  return {.name = "shared_query",
          .sentence = "heads share one query, key and value, and each maps the query",
          .paper = "ours; with a full map Hu et al., 2024",
          .make = shared_query::make,
          .options = scheme_options<SharedQueryOptions>(shared_query::fields),
          .reads = {"kv-shift", "key-offset"},
          .set_defaults = shared_query::set_defaults,
          .why_not = shared_query::why_not,
          .sizes = shared_query::sizes,
          .since = 14};
}

}  // namespace headshare
