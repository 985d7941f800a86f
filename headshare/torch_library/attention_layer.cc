// An attention layer for Python (python/headshare/nn.py).
#include <ATen/ATen.h>
#include <torch/custom_class.h>

#include <nlohmann/json.hpp>

#include "headshare/attention/attention.h"
#include "headshare/attention/idle_options.h"
#include "headshare/base/error.h"
#include "headshare/ops/head_attention/head_weights.h"
#include "headshare/torch_library/borrowing.h"
#include "headshare/torch_library/classes.h"

namespace headshare {
namespace {

// Lists the options of a layer that stands alone: those that users set, and what else a model would set.
Fields layer_fields(AttentionOptions& o) {
  Fields list = {
      field("scheme", &o.scheme, "how heads share projections"),
      field("d-model", &o.d_model, "width of what the layer reads and gives", {.min = 1}),
      field("heads", &o.heads, "number of heads", {.min = 1}),
      field("rotary", &o.rotary, "positions are rotated into queries and keys"),
      field("alibi", &o.alibi, "scores fall with distance, by a slope per head"),
      field("init-deviation", &o.init_deviation, "projections start from N(0, this^2)", {.min = 0}),
      field("output-deviation", &o.output_deviation, "the output projection starts from N(0, this^2)", {.min = 0}),
  };
  append(&list, rotary_fields(o));
  append(&list, fields(o));
  return list;
}

// Lists options that change nothing beside the others. A base that stands alone is accepted, as before.
IdleOptions idle_options(AttentionOptions options) {
  IdleOptions idle = idle_scheme_options({options.scheme});
  if (options.rotary) {
    append(&idle, idle_scaling_options(options.rotary_scaling));
    return idle;
  }
  for (const Field& one : rotary_fields(options)) {
    if (one.name != "rotary-base") idle.push_back({one.name, "does nothing without rotary positions"});
  }
  return idle;
}

AttentionOptions parsed_options(const std::string& text) {
  const nlohmann::json given = nlohmann::json::parse(text);
  AttentionOptions options;
  Fields list = layer_fields(options);
  from_json(list, given, "the options of an attention layer");
  for (const IdleOption& idle : idle_options(options)) {
    HS_CHECK(!given.contains(idle.name), idle.name, " ", idle.why, "; leave it out");
  }
  HS_CHECK(!options.rotary || !options.alibi, "a layer has rotary or ALiBi positions, not both");
  return resolve(options);
}

HeadMask mask_of(bool causal, const std::optional<Tensor>& visible) {
  return {.causal = causal, .visible_keys = visible.value_or(Tensor())};
}

void check_input(const Tensor& x, const char* name, const AttentionOptions& options, const Tensor& weight) {
  HS_CHECK(x.dim() == 3 && x.size(2) == options.d_model, name, " has the shape ", x.sizes(),
           "; a batch of sequences is wanted, [B, T, ", options.d_model, "]");
  HS_CHECK(x.device() == weight.device(), name, " is on ", x.device(), ", the layer's parameters are on ",
           weight.device());
  HS_CHECK(at::isFloatingType(x.scalar_type()), name, " holds ", x.scalar_type(),
           "; floating-point numbers are wanted");
}

void check_visible(const std::optional<Tensor>& visible, int64_t B, int64_t S) {
  if (!visible) return;
  HS_CHECK(visible->scalar_type() == at::kBool && visible->sizes() == at::IntArrayRef({B, S}), "visible keys have ",
           visible->scalar_type(), " ", visible->sizes(), "; bool [", B, ", ", S, "] is wanted, false for padding");
}

class AttentionLayer : public torch::CustomClassHolder {
 public:
  explicit AttentionLayer(std::string options)
      : text_(std::move(options)),
        options_(parsed_options(text_)),
        borrowing_([options = options_] {
          Attention attention(options);
          const auto clock = std::make_shared<DropoutClock>();
          attach(*attention, clock);
          return Borrowing::Made{attention.ptr(), clock.get()};
        }),
        kept_of_a_token_(kept_of_a_token(options_)) {}

  const std::string& given() const { return text_; }

  std::vector<ParameterDescription> parameters() const { return borrowing_.parameters(); }

  // Counts as docs/mathematics.md#overview does.
  std::vector<int64_t> cost() const {
    const DeclareOn meta(at::kMeta);
    const AttentionCost cost = make_scheme(options_)->cost();
    return {cost.parameters, cost.effective, cost.biases, cost.cache_elements};
  }

  // Attends from x [B, T, E] to itself, or to y [B, S, E] where it is given.
  Tensor forward(const Tensor& x, const std::optional<Tensor>& y, const std::vector<Tensor>& parameters, bool causal,
                 const std::optional<Tensor>& visible, std::optional<int64_t> seed) const {
    check(x, y, visible, parameters);
    return borrowing_.run<AttentionImpl>(parameters, seed, [&](AttentionImpl& layer) {
      return y ? layer.cross(x, *y, mask_of(causal, visible)) : layer.self(x, mask_of(causal, visible));
    });
  }

  // Returns where the heads look, [B, H, T, S], without dropout.
  Tensor weights(const Tensor& x, const std::optional<Tensor>& y, const std::vector<Tensor>& parameters, bool causal,
                 const std::optional<Tensor>& visible) const {
    check(x, y, visible, parameters);
    return borrowing_.run<AttentionImpl>(parameters, std::nullopt, [&](AttentionImpl& layer) {
      const PosedAttention asked = layer.pose(x, y.value_or(x), mask_of(causal, visible));
      return head_weights(asked.posed.problem, asked.mask);
    });
  }

  // Decodes: x [B, T, E] follows on the tokens in `cache`, which is empty at first. Returns the output and what a cache
  // holds then: the tensors of the scheme's memory, [B, heads, tokens, width]. No gradient passes through it.
  std::tuple<Tensor, std::vector<Tensor>> step(const Tensor& x, const std::vector<Tensor>& parameters,
                                               const std::vector<Tensor>& cache,
                                               const std::optional<Tensor>& visible) const {
    const at::NoGradGuard no_grad;
    check(x, {}, {}, parameters);
    check_cache(cache, x);
    const int64_t seen = cache.empty() ? 0 : cache.front().size(2);
    check_visible(visible, x.size(0), seen + x.size(1));
    return borrowing_.run<AttentionImpl>(parameters, std::nullopt, [&](AttentionImpl& layer) {
      KvCache held(seen + x.size(1));
      if (!cache.empty()) held.append(cache);
      const Tensor output = layer.self(x, mask_of(/*causal=*/true, visible), &held);
      return std::tuple(output, held.contents());
    });
  }

 private:
  // Throws Error unless the cache is empty or holds what this scheme keeps of sequences like those of x.
  void check_cache(const std::vector<Tensor>& cache, const Tensor& x) const {
    if (cache.empty()) return;
    const Memory& kept = kept_of_a_token_;
    HS_CHECK(cache.size() == kept.size(), "the cache has ", cache.size(), " tensors; the scheme ", options_.scheme,
             " keeps ", kept.size());
    for (size_t i = 0; i < kept.size(); ++i) {
      const bool four = cache[i].dim() == 4;
      const std::vector<int64_t> wanted = {x.size(0), kept[i].size(1), four ? cache[0].size(2) : 0, kept[i].size(3)};
      HS_CHECK(four && cache[i].sizes() == at::IntArrayRef(wanted), "tensor ", i, " of the cache has the shape ",
               cache[i].sizes(), "; the scheme ", options_.scheme, " keeps [", wanted[0], ", ", wanted[1], ", tokens, ",
               wanted[3], "]");
      HS_CHECK(cache[i].device() == x.device() && at::isFloatingType(cache[i].scalar_type()), "tensor ", i,
               " of the cache is ", cache[i].scalar_type(), " on ", cache[i].device(), "; the input is on ",
               x.device());
    }
  }

  // Returns what a cache holds of one token, on kMeta: shapes are all that counts.
  static Memory kept_of_a_token(const AttentionOptions& options) {
    const at::NoGradGuard no_grad;
    const DeclareOn meta(at::kMeta);
    return make_scheme(options)->remember(at::empty({1, 1, options.d_model}, at::kMeta), /*first=*/0);
  }

  void check(const Tensor& x, const std::optional<Tensor>& y, const std::optional<Tensor>& visible,
             const std::vector<Tensor>& parameters) const {
    HS_CHECK(!parameters.empty(), "the layer's parameters are missing");
    check_input(x, "the input", options_, parameters.front());
    if (y) check_input(*y, "the memory", options_, parameters.front());
    const Tensor& memory = y ? *y : x;
    HS_CHECK(memory.size(0) == x.size(0), "the input has ", x.size(0), " sequences, the memory ", memory.size(0));
    check_visible(visible, memory.size(0), memory.size(1));
  }

  std::string text_;
  AttentionOptions options_;
  Borrowing borrowing_;
  Memory kept_of_a_token_;
};

}  // namespace

void register_attention_layer(torch::Library* library) {
  library->class_<AttentionLayer>("AttentionLayer")
      .def(torch::init<std::string>())
      .def("parameters", &AttentionLayer::parameters)
      .def("cost", &AttentionLayer::cost)
      .def("forward", &AttentionLayer::forward)
      .def("weights", &AttentionLayer::weights)
      .def("step", &AttentionLayer::step)
      .def_pickle([](const c10::intrusive_ptr<AttentionLayer>& layer) { return layer->given(); },
                  [](std::string options) { return c10::make_intrusive<AttentionLayer>(std::move(options)); });
}

}  // namespace headshare
