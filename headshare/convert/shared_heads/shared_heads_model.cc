#include "headshare/convert/shared_heads/shared_heads_model.h"

#include <ATen/ATen.h>

#include <chrono>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/convert/shared_heads/conversion_record.h"
#include "headshare/convert/shared_heads/sharing_problem.h"

namespace headshare {
namespace {

template <class Model>
class SharedHeadsConversion {
 public:
  SharedHeadsConversion(const Model& source, const SharedHeadsOptions& options, const ConversionObserver& observer)
      : source_(source), layers_(attention_layers(*source)), options_(options), observer_(observer) {
    target_ = target_options();  // what is impossible is refused at once
    if constexpr (kReadsSamples<Model>) {
      if (options.sample.defined())
        moments_ = layer_moments(source, options.sample, rows_observer(observer, "what layers read"));
    }
    if (options.sizes.mean || options.sizes.max_error) choose_sizes();
  }

  Model run(SharedHeadsReport* report) {
    Model target(target_);
    target->eval();
    copy_all_but_attention(source_, target);
    std::vector<AttentionLayer> filled = attention_layers(*target);
    for (size_t i = 0; i < layers_.size(); ++i) report->layers.push_back(fill(i, &filled[i].attention->scheme()));
    report->stopped = stopped_;
    if constexpr (kReadsSamples<Model>) {
      if (options_.sample.defined()) report_changes(source_, target, options_.sample, observer_, report);
    }
    check_finite(model_tensors(*target), "the converted model");
    return target;
  }

 private:
  HeadMaps maps(size_t layer) const { return head_maps(layers_[layer].attention->scheme(), layers_[layer].name); }

  bool any_needs_biases() const {
    bool any = false;
    for (size_t i = 0; i < layers_.size(); ++i) {
      any = needs_biases(maps(i), layers_[i].attention->scheme().options()) || any;
    }
    return any;
  }

  OptionsOf<Model> target_options() const {
    const bool biased = any_needs_biases();
    OptionsOf<Model> options = with_attention(
        source_->options(), [&](const AttentionOptions& one) { return converted_options(one, options_.to, biased); });
    options.layer_key_widths.clear();
    return resolve(options);
  }

  LayerInputs inputs(size_t layer) const {
    if (moments_.empty()) return {};
    return {.query = &moments_[layer], .key = &moments_[layer]};
  }

  void choose_sizes() {
    const ConversionRecord& conversion = conversion_record(options_.to.scheme);
    HS_CHECK(conversion.layer_sizes, "layers of ", conversion.scheme,
             " have one size; leave the choice of a size for each layer out");
    std::vector<ErrorsBySize> errors;
    for (size_t i = 0; i < layers_.size(); ++i) {
      const HeadMaps heads = maps(i);
      errors.push_back(conversion.layer_sizes->errors({heads, inputs(i), attention_options(target_)}));
    }
    const std::vector<int64_t> sizes = sizes_of_layers(errors, options_.sizes);
    target_ = resolve(with_attention(target_, [&](AttentionOptions one) {
      conversion.layer_sizes->set(sizes, &one);
      return one;
    }));
  }

  SharedLayerReport fill(size_t layer, Scheme* target) {
    const auto started = std::chrono::steady_clock::now();
    const HeadMaps heads = maps(layer);
    SharingTask task{.maps = heads,
                     .inputs = inputs(layer),
                     .pooling = options_.to.pooling,
                     .decomposition = options_.decomposition,
                     .progress = progress(layer)};
    if (stopped_) task.decomposition.iterations = task.decomposition.restarts = 0;
    const SharedResult result = fill_shared(task, target);
    tell(static_cast<double>(layer + 1), layers_[layer].name);
    // Layers without iterations have no result that is good so far.
    if (stopped_ && !(conversion_record(target->options().scheme).iterates && !target->options().rotary))
      throw Interrupted("stopped; nothing was written");
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
    return {.layer = layers_[layer].name, .result = result, .size = size_of(*target), .seconds = seconds.count()};
  }

  std::optional<int64_t> size_of(const Scheme& target) const {
    const std::optional<ConversionSize>& size = conversion_record(target.options().scheme).size;
    return size ? size->value(target.options()) : std::nullopt;
  }

  DecompositionProgress progress(size_t layer) {
    return [this, layer](int64_t iterations, double error) {
      const auto most = static_cast<double>((1 + options_.decomposition.restarts) * options_.decomposition.iterations);
      const double done = static_cast<double>(layer) + static_cast<double>(iterations) / most;
      tell(done, join_text(layers_[layer].name, ", error ", std::round(error * 1e4) / 1e4));
      return !stopped_;
    };
  }

  void tell(double done, const std::string& what) {
    if (observer_ == nullptr) return;
    const auto total = static_cast<double>(layers_.size());
    if (!observer_({.done = done, .total = total, .what = what})) stopped_ = true;
  }

  const Model& source_;
  std::vector<AttentionLayer> layers_;
  const SharedHeadsOptions& options_;
  const ConversionObserver& observer_;
  OptionsOf<Model> target_ = {};
  std::vector<Moments> moments_;  // of each layer; empty without a sample
  bool stopped_ = false;
};

}  // namespace

Decoder to_shared(const Decoder& source, const SharedHeadsOptions& options, const ConversionObserver& observer,
                  SharedHeadsReport* report) {
  const at::NoGradGuard no_grad;
  return SharedHeadsConversion<Decoder>(source, options, observer).run(report);
}

Encoder to_shared(const Encoder& source, const SharedHeadsOptions& options, const ConversionObserver& observer,
                  SharedHeadsReport* report) {
  const at::NoGradGuard no_grad;
  return SharedHeadsConversion<Encoder>(source, options, observer).run(report);
}

EncoderDecoder to_shared(const EncoderDecoder& source, const SharedHeadsOptions& options,
                         const ConversionObserver& observer, SharedHeadsReport* report) {
  const at::NoGradGuard no_grad;
  HS_CHECK(!options.sizes.mean && !options.sizes.max_error,
           "an encoder-decoder has one size for all layers: give it with the scheme (--to mla:WIDTH) instead of "
           "--mean-latent-width or --max-error");
  HS_DCHECK(!options.sample.defined());
  return SharedHeadsConversion<EncoderDecoder>(source, options, observer).run(report);
}

VisionTransformer to_shared(const VisionTransformer& source, const SharedHeadsOptions& options,
                            const ConversionObserver& observer, SharedHeadsReport* report) {
  const at::NoGradGuard no_grad;
  return SharedHeadsConversion<VisionTransformer>(source, options, observer).run(report);
}

}  // namespace headshare
