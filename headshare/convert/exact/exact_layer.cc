#include "headshare/convert/exact/exact_layer.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/attention/scheme_record.h"
#include "headshare/attention/schemes/collaborative.h"
#include "headshare/attention/schemes/gqa.h"
#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/convert/collaborative/fill_scheme.h"

namespace headshare {
namespace {

constexpr double kSameMaps = 1e-13;  // relative: maps that are one differ by rounding in double at most

// A scheme that computes with another's weights (el_lossless) is read as that one.
std::shared_ptr<Scheme> as_trained_scheme(const Scheme& scheme) {
  AttentionOptions options = scheme.options();
  options.scheme = scheme_record(options.scheme).weights_of;
  const std::shared_ptr<Scheme> trained = make_scheme(resolve(options));
  const std::vector<Declared> from = declared_parameters(scheme), to = declared_parameters(*trained);
  for (size_t i = 0; i < from.size(); ++i) to[i].tensor.copy_(from[i].tensor);
  return trained;
}

// The bias of the projection that gives values, for each head [H, D]; undefined where there is none.
Tensor stored_value_bias(const Scheme& scheme) {
  const int64_t H = scheme.options().heads, D = *scheme.options().head_width;
  for (const Declared& one : declared_parameters(scheme)) {
    if (one.name != "value.bias" && one.name != "key_value.bias") continue;
    const Tensor each = one.tensor.to(at::kDouble).view({-1, D});
    return each.repeat_interleave(H / each.size(0), 0);
  }
  return {};
}

bool is_not_zero(const Tensor& values) { return values.count_nonzero().item<int64_t>() > 0; }

// Heads [H, E, w] with zeros behind, [H, E, D].
Tensor widened(const Tensor& maps, int64_t width) { return at::constant_pad_nd(maps, {0, width - maps.size(-1)}); }

// Says why heads that differ cannot share a map here, and what to do.
std::string way_out(const AttentionOptions& source, const AttentionOptions& target) {
  const bool turned = source.rotary && memory_heads(source).keys > 1;
  return join_text(turned ? "; rotary positions turn what each head has of its own in its keys, so that it cannot move "
                            "to the queries"
                          : "",
                   "; ", target.scheme == "mha" ? "" : "choose --to mha, or ",
                   "leave --exact out for an approximation");
}

// One of each group of heads that share [H, ...] -> [groups, ...]; refused where they differ.
Tensor shared_by_groups(const Tensor& maps, int64_t groups, const std::string& what, const std::string& layer,
                        const std::string& advice) {
  const int64_t each = maps.size(0) / groups;
  const double size = maps.abs().max().item<double>();
  for (int64_t h = 0; h < maps.size(0); ++h) {
    const int64_t first = h / each * each;
    const double gap = (maps[h] - maps[first]).abs().max().item<double>();
    HS_CHECK(gap <= kSameMaps * size, layer, ": heads ", first + 1, " and ", h + 1, " differ in their ", what, " by ",
             percent_text(gap / size), " of the largest value, and would have to share them", advice);
  }
  return maps.slice(0, 0, maps.size(0), each);
}

// [n, E, w] as the weight of a projection, [n w, E].
Tensor projection_weight(const Tensor& maps) { return maps.transpose(1, 2).reshape({-1, maps.size(1)}); }

// A collaborative layer may turn pairs of dimensions by the frequencies of narrower heads.
bool has_own_period(const AttentionOptions& options) {
  const std::optional<int64_t>& width = options.own.get<CollaborativeOptions>().rotary_width;
  return scheme_record(options.scheme).shares_key_width && width && *width != *options.head_width;
}

}  // namespace

const std::vector<std::string>& exact_schemes() {
  static const std::vector<std::string> all = {"mha", "gqa", "mqa", "sha", "el_lossless"};
  return all;
}

MemoryHeads memory_heads(const AttentionOptions& resolved) {
  const at::NoGradGuard no_grad;
  AttentionOptions options = resolved;
  if (const std::string of = scheme_record(options.scheme).weights_of; !of.empty()) options.scheme = of;
  const std::shared_ptr<Scheme> scheme = make_scheme(resolve(options));  // whose values do not matter
  const Tensor row = at::zeros({1, 1, resolved.d_model});
  const Posed posed = scheme->posed(scheme->project_queries(row, 0), scheme->remember(row, 0), Form::kManyQueries);
  return {.keys = posed.problem.key.size(1), .values = posed.problem.value.size(1)};
}

bool keeps_content_bias(const AttentionOptions& source, const ExactTarget& to) {
  if (!source.content_bias) return false;
  const bool has_room = compared_width(source) < *source.head_width;
  return to.scheme != "mha" || source.rotary || !has_room;
}

namespace {

// Throws Error for a layer that has no exact form at all.
void check_exact_form(const AttentionOptions& source) {
  const int64_t keys = compared_width(source), width = *source.head_width;
  HS_CHECK(
      !source.qk_norm,
      "the model norms queries and keys (--qk-norm): the norm stands between the maps and the scores, so that no "
      "head can be rewritten; to have heads that share, train a model of the scheme, with this one as its --teacher");
  HS_CHECK(!source.sinks,
           "the model's heads have sinks (--attention-sinks), which weigh the biases that rewriting heads moves");
  HS_CHECK(source.gate == OutputGate::kNone,
           "the model's heads have an output gate (--output-gate), which multiplies the elements that rewriting heads "
           "moves");
  HS_CHECK(keys <= width, "heads of ", source.scheme, " compare ", keys, " dimensions, and a head is ", width,
           " wide: no scores of so many dimensions fit into fewer; convert the model with --to mqa or --to gqa:G, "
           "which approximate it");
  const int64_t turned = source.rotary_dimensions.value_or(width);  // in the result
  HS_CHECK(!source.rotary || (keys == width && rotated_width(source) == turned && !has_own_period(source)),
           "rotary positions turn ", rotated_width(source), " of ", keys, " dimensions in heads of ", source.scheme,
           ", and ", turned, " of ", width, " dimensions of a usual head, by other angles");
}

}  // namespace

AttentionOptions exact_options(const AttentionOptions& source, const ExactTarget& to, const NeededBiases& needed) {
  const std::vector<std::string>& known = exact_schemes();
  HS_CHECK(std::find(known.begin(), known.end(), to.scheme) != known.end(), "--exact rewrites heads as ",
           list_text(known, "or"), ", not as ", to.scheme, "; leave --exact out for an approximation");
  check_exact_form(source);
  AttentionOptions options = source;
  options.scheme = to.scheme;
  options.key_width.reset();
  options.scale.reset();
  for (const auto& one : scheme_records()) {
    if (one->options.reset != nullptr) one->options.reset(&options);
  }
  if (to.scheme == "gqa") options.own.get<GqaOptions>().groups = to.groups;
  if (to.scheme == "sha") options.heads = 1;
  options.projection_bias = needed.projection;
  options.content_bias = needed.content;
  return resolve(options);
}

HeadMaps exact_maps(const Scheme& source, const std::string& layer) {
  const at::NoGradGuard no_grad;
  if (!scheme_record(source.options().scheme).weights_of.empty()) {
    return exact_maps(*as_trained_scheme(source), layer);
  }
  HeadMaps maps = repeated_head_maps(source, layer);
  if (const Tensor bias = stored_value_bias(source); bias.defined()) {
    maps.value_bias = bias;
    maps.output_bias = maps.output_bias - at::einsum("hd,hde->e", {bias, maps.output});
  }
  return maps;
}

NeededBiases exact_biases(const HeadMaps& maps, const AttentionOptions& source, const ExactTarget& to) {
  const bool keeps = keeps_content_bias(source, to);
  const bool ends = is_not_zero(maps.output_bias) || is_not_zero(maps.value_bias);
  const bool compared = is_not_zero(maps.query_bias) || (source.rotary && is_not_zero(maps.key_bias));
  return {.projection = source.projection_bias || ends || compared || (source.content_bias && !keeps),
          .content = keeps};
}

namespace {

// Fills one layer; heads that share a map are checked where it is taken from one of them.
class ExactFill {
 public:
  ExactFill(const HeadMaps& maps, const AttentionOptions& source, const std::string& layer, Scheme* target)
      : maps_(maps), source_(source), layer_(layer), target_(target->options()), filler_(target) {}

  void run() {
    set_queries();
    set_projection("key", key(), target_.rotary ? maps_.key_bias : Tensor(), groups(), "keys");
    set_projection("value", maps_.value, maps_.value_bias, groups(), "values");
    set_output();
    if (target_.content_bias) set_content_bias();
  }

 private:
  bool is_one_head() const { return target_.scheme == "sha"; }
  int64_t heads() const { return maps_.query.size(0); }
  int64_t groups() const {
    if (is_one_head() || target_.scheme == "mqa") return 1;
    return target_.scheme == "gqa" ? groups_of(target_) : heads();
  }
  bool adds_content_dimension() const { return source_.content_bias && !target_.content_bias; }
  double ratio() const { return *source_.scale / *target_.scale; }  // the target's scores have the target's scale
  int64_t place() const { return maps_.key.size(2); }               // of a content bias among the key dimensions

  Tensor key() const {
    const Tensor key = widened(maps_.key, *target_.head_width);
    if (adds_content_dimension()) key.select(2, place()).copy_(maps_.content_bias);
    return key;
  }

  void set_queries() {
    const Tensor query = widened(maps_.query, *target_.head_width) * ratio();
    const Tensor bias = widened(maps_.query_bias, *target_.head_width) * ratio();
    if (adds_content_dimension()) bias.select(1, place()).fill_(ratio());  // a constant query reads the content bias
    set_projection("query", query, bias, is_one_head() ? 1 : heads(), "queries");
  }

  Tensor shared(const Tensor& maps, int64_t count, const std::string& what) const {
    return shared_by_groups(maps, count, what, layer_, way_out(source_, target_));
  }

  void set_projection(const std::string& name, const Tensor& maps, const Tensor& bias, int64_t count,
                      const std::string& what) {
    filler_.set(name + ".weight", projection_weight(shared(maps, count, what)));
    if (bias.defined() && filler_.has(name + ".bias")) filler_.set(name + ".bias", shared(bias, count, what));
  }

  void set_output() {
    const Tensor maps = is_one_head() ? maps_.output.sum(0, /*keepdim=*/true) : maps_.output;
    filler_.set("output.weight", maps.flatten(0, 1).t());
    if (filler_.has("output.bias")) filler_.set("output.bias", maps_.output_bias);
  }

  void set_content_bias() {
    const Tensor bias = maps_.content_bias * ratio();
    filler_.set("content_bias", is_one_head() ? shared(bias, 1, "content biases") : bias);
  }

  const HeadMaps& maps_;
  const AttentionOptions& source_;
  const std::string& layer_;
  const AttentionOptions& target_;
  SchemeFiller filler_;
};

}  // namespace

void fill_exactly(const HeadMaps& maps, const AttentionOptions& source, const std::string& layer, Scheme* target) {
  const at::NoGradGuard no_grad;
  HS_CHECK(target->options().scheme != "sha" || !source.alibi, layer,
           ": ALiBi gives every head a slope of its own, so that heads of sha are not one; choose --to mha");
  ExactFill(maps, source, layer, target).run();
}

}  // namespace headshare
