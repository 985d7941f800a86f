// This is collaborative attention (Cordonnier et al., 2020; docs/mathematics.md#collaborative): heads share query and
// key maps of width R and mix their dimensions by a vector each. Values stay per head.
//   q_h = (x W_Q) * m_h, k = y W_K [R wide], v_h = y W_V^h; cache: k, v: R + H D per token
// With a rotary width, dimensions i and i + R/2 of queries and of m_h are one complex number (complex_pairs.h), so that
// heads can share what each of them turns.
#include "headshare/attention/schemes/collaborative.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "headshare/attention/schemes.h"
#include "headshare/attention/schemes/complex_pairs.h"
#include "headshare/base/error.h"

namespace headshare {
namespace {

class Collaborative : public Scheme {
 public:
  explicit Collaborative(const AttentionOptions& options)
      : Scheme(options),
        query_(projection("query", R())),
        key_(key_projection("key", R())),
        value_(memory_projection("value", H() * D())),
        output_(output_projection()),
        rotary_width_(own().rotary_width),
        mixing_(declare("mixing", {H(), R()}, Init::normal(*own().mixing_deviation), Decay::kNo)) {}

  Tensor project_queries(const Tensor& x, int64_t first) const override {
    return turned(mixed(normed_query(split_heads(query_->forward(x), 1))), first);  // [B, H, T, R]
  }

  Tensor merge(const Posed& posed, const Tensor& heads, const Tensor& live) const override {
    return project_heads(output_, heads, value_offset(value_), live, posed);
  }

 protected:
  Memory project_memory(const Tensor& y, int64_t first) const override {
    // The key is k [B, 1, S, R] and the values are v [B, H, S, D].
    return {turned(normed_key(split_heads(key_->forward(y), 1)), first), split_heads(values_of(value_, y), H())};
  }

  HeadProblem pose(const Tensor& queries, const Memory& memory, Form) const override {
    return {.heads = H(), .query = queries, .key = memory[0], .value = memory[1]};
  }

  // The mixing vectors absorb the query's, and where nothing turns the key's too.
  int64_t effective_norm_weights(int64_t) const override { return turned_width(); }

  AttentionCost own_cost() const override {
    const int64_t values = E() * H() * D();
    const int64_t parameters = E() * R() + H() * R() + of_memory(E() * R() + values) + values;
    return {.parameters = parameters, .effective = parameters, .cache_elements = R() + H() * D()};
  }

 private:
  const CollaborativeOptions& own() const { return options().own.get<CollaborativeOptions>(); }
  int64_t R() const { return *options().key_width; }

  // Maps q [B, 1, T, R] to the heads' queries [B, H, T, R].
  Tensor mixed(const Tensor& q) const {
    const Tensor m = mixing_.unsqueeze(1);  // [H, 1, R]
    return rotary_width_ ? complex_product(q, m) : q * m;
  }

  Tensor turned(const Tensor& x, int64_t first) const {
    return rotated(x, first, rotary_width_.value_or(turned_width()));
  }

  Linear query_, key_, value_, output_;
  std::optional<int64_t> rotary_width_;
  Tensor mixing_;  // m: [H, R]
};

}  // namespace

namespace {
namespace collaborative {

// Sets a key width that is even, so that rotary positions are possible, and the temperature of heads that are E / H
// wide, whatever the width of the values (docs/mathematics.md).
void set_defaults(AttentionOptions* options) {
  if (!options->scale) {
    options->scale = std::sqrt(static_cast<double>(options->heads) / static_cast<double>(options->d_model));
  }
  if (!options->key_width) options->key_width = std::max<int64_t>(2, options->d_model / 4 * 2);
}

int64_t whole_width(const AttentionOptions& options) { return *options.key_width; }

std::string why_not(const AttentionOptions& o) {
  const CollaborativeOptions& own = o.own.get<CollaborativeOptions>();
  if (!own.rotary_width) return "";
  if (!o.rotary) return "rotary-width is about rotary positions; leave it out, or set --positions rotary";
  if (o.rotary_dimensions) {
    return "collaborative with a rotary-width turns whole heads, and not only some rotary-dimensions; leave one of the "
           "two out";
  }
  const int64_t width = *own.rotary_width;
  if (width % 2 == 0 && *o.key_width % width == 0) return "";
  return join_text("key-width must be a multiple of rotary-width, which is even: ", *o.key_width, " and ", width,
                   "; set --key-width to a multiple of the width of a head");
}

std::string sizes(const AttentionOptions& options) { return join_text("key width ", *options.key_width); }

constexpr double kMixingDeviation = 1;  // measured: docs/design/027-where-mixing-starts.md

Fields fields(CollaborativeOptions& o) {
  return {
      field("mixing-deviation", &o.mixing_deviation,
            join_text("collaborative mixing starts from N(0, this squared); auto: ", kMixingDeviation),
            {.min = 0, .max = 10}),
      field("rotary-width", &o.rotary_width,
            "collaborative mixes pairs of dimensions as complex numbers, which turn as in rotary heads of this width; "
            "auto: every dimension by itself",
            {.min = 2, .max = 1 << 16, .since = 5}),
  };
}

SchemeOptions own_options() {
  SchemeOptions options = scheme_options<CollaborativeOptions>(fields);
  options.fill_in = [](AttentionOptions* o) {
    std::optional<double>& deviation = o->own.get<CollaborativeOptions>().mixing_deviation;
    if (!deviation) deviation = kMixingDeviation;
  };
  options.leave_rotary_out = [](AttentionOptions* o) { o->own.get<CollaborativeOptions>().rotary_width.reset(); };
  return options;
}

}  // namespace collaborative
}  // namespace

SchemeRecord collaborative_scheme() {
  return {.name = "collaborative",
          .sentence = "heads share query and key maps, and each weights their dimensions",
          .paper = "Cordonnier et al., 2020",
          .make = make_as<Collaborative>,
          .options = collaborative::own_options(),
          .reads = {"key-width", "layer-key-widths"},
          .set_defaults = collaborative::set_defaults,
          .why_not = collaborative::why_not,
          .compared_width = collaborative::whole_width,
          .sizes = collaborative::sizes,
          .shares_key_width = true};
}

}  // namespace headshare
