#include "headshare/convert/collaborative/collaborative_model.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "headshare/attention/scheme_record.h"
#include "headshare/attention/schemes/collaborative.h"
#include "headshare/base/error.h"
#include "headshare/convert/collaborative/widths.h"
#include "headshare/models/size.h"

namespace headshare {
namespace {

constexpr int64_t kFineParts = 16;   // widths tried for a limit on errors
constexpr int64_t kCoarseParts = 8;  // for a limit on parameters, which needs the errors of all of them

// |P| of a layer's heads, in units of scores: what its errors are relative to.
double size_of_scores(const HeadSlices& slices) {
  const auto gram = [](const Tensor& maps) { return maps.transpose(-2, -1).conj().matmul(maps); };
  return std::sqrt(at::real(gram(slices.query) * gram(slices.key).conj()).sum().item<double>());
}

template <class Model>
class CollaborativeConversion {
 public:
  CollaborativeConversion(const Model& source, const CollaborativeHeadsOptions& options,
                          const ConversionObserver& observer)
      : source_(source),
        layers_(attention_layers(*source)),
        options_(options),
        observer_(observer),
        attention_(attention_options(source->options())) {
    check_source();
    // Maps are read again where they are decomposed: in double, those of all layers take twice the memory of attention.
    for (size_t i = 0; i < layers_.size(); ++i) {
      const NeededBiases needed = needed_biases(maps(i), layer_options(i));
      needed_ = {needed_.projection || needed.projection, needed_.content || needed.content};
    }
    if constexpr (kReadsSamples<Model>) {
      if (options.sample.defined())
        moments_ = layer_moments(source, options.sample, rows_observer(observer, "what layers read"));
    }
  }

  Model run(CollaborativeHeadsReport* report) {
    const std::vector<int64_t> widths = choose_widths();
    Model target(target_options(widths));
    target->eval();
    copy_all_but_attention(source_, target);
    std::vector<AttentionLayer> filled = attention_layers(*target);
    for (size_t i = 0; i < widths.size(); ++i)
      report->layers.push_back(fill(i, widths[i], &filled[i].attention->scheme()));
    report->stopped = stopped_;
    if constexpr (kReadsSamples<Model>) {
      if (options_.sample.defined()) report_changes(source_, target, options_.sample, observer_, report);
    }
    check_finite(model_tensors(*target), "the converted model");
    return target;
  }

 private:
  // A collaborative model's own factors are no start of a decomposition, so that only narrower ones make sense.
  void check_source() const {
    for (const AttentionLayer& layer : layers_) {
      const AttentionOptions& attention = layer.attention->scheme().options();
      if (!scheme_record(attention.scheme).shares_key_width) continue;
      HS_CHECK(
          !attention.rotary || attention.own.get<CollaborativeOptions>().rotary_width,
          "this collaborative model mixes dimensions of queries that rotary positions turn, one by one, which "
          "heads that share what turns alike cannot hold (--rotary-width); convert the model that it was made from");
      HS_CHECK(options_.width.key_width && *options_.width.key_width < *attention.key_width, layer.name,
               " is collaborative already, with key width ", *attention.key_width, "; give a smaller --key-width");
    }
  }

  const AttentionOptions& layer_options(size_t layer) const { return layers_[layer].attention->scheme().options(); }
  HeadMaps maps(size_t layer) const { return head_maps(layers_[layer].attention->scheme(), layers_[layer].name); }

  LayerInputs inputs(size_t layer) const {
    if (moments_.empty()) return {};
    return {.query = &moments_[layer], .key = &moments_[layer]};
  }

  AttentionOptions attention_of(int64_t width) const { return collaborative_options(attention_, width, needed_); }

  OptionsOf<Model> target_options(const std::vector<int64_t>& widths) const {
    const int64_t widest = *std::max_element(widths.begin(), widths.end());
    OptionsOf<Model> options = with_attention(
        source_->options(), [&](const AttentionOptions& one) { return collaborative_options(one, widest, needed_); });
    const bool alike = std::all_of(widths.begin(), widths.end(), [&](int64_t w) { return w == widths.front(); });
    options.layer_key_widths = alike ? std::vector<int64_t>() : widths;
    return resolve(options);
  }

  std::vector<int64_t> choose_widths() {
    const WidthChoice& choice = options_.width;
    tries_ = static_cast<int64_t>(layers_.size());
    if (choice.key_width) return std::vector<int64_t>(layers_.size(), *choice.key_width);
    if (choice.max_error) return widths_by_error(*choice.max_error);
    return widths_by_parameters(choice.max_parameters ? *choice.max_parameters : parameters(*choice.mean_key_width));
  }

  std::vector<int64_t> widths_by_error(double most) {
    const std::vector<int64_t> widths = widths_to_try(kFineParts);
    tries_ += static_cast<int64_t>(layers_.size()) * tries_within(widths);
    std::vector<int64_t> chosen;
    for (size_t i = 0; i < layers_.size(); ++i) {
      const HeadMaps layer = maps(i);
      chosen.push_back(width_within(widths, most, [&](int64_t width) { return error_at(i, layer, width); }));
      tried_ = static_cast<int64_t>(i + 1) * tries_within(widths);  // bisection may have needed one less
    }
    return chosen;
  }

  // Counts the parameters of a model whose layers all have this width.
  int64_t parameters(int64_t width) const {
    return measure(target_options(std::vector<int64_t>(layers_.size(), width))).total_parameters;
  }

  std::vector<int64_t> widths_by_parameters(int64_t most) {
    const std::vector<int64_t> widths = widths_to_try(kCoarseParts);
    const auto layers = static_cast<int64_t>(layers_.size());
    // One width more, and what stays whatever the widths.
    const int64_t step = key_width_step(attention_);
    if (widths.size() == 1) {
      HS_CHECK(most >= parameters(widths.front()), "a limit of ", most, " parameters is too low: key width ",
               widths.front(), " is the only one that heads like these can share, and the model has ",
               parameters(widths.front()), " with it");
      return std::vector<int64_t>(layers_.size(), widths.front());
    }
    const int64_t per_width = (parameters(2 * step) - parameters(step)) / layers / step;
    const int64_t fixed = parameters(step) - layers * step * per_width;
    HS_CHECK(most - fixed >= layers * widths.front() * per_width, "a limit of ", most,
             " parameters is too low: with key width ", widths.front(), " in every layer the model has ",
             fixed + layers * widths.front() * per_width);
    const int64_t most_tries = layers * static_cast<int64_t>(widths.size() - 1);
    tries_ += most_tries;
    const std::vector<int64_t> chosen =
        widths_in_budget(widths, layers_.size(), score_errors(widths.back()), per_width, most - fixed);
    tried_ = most_tries;  // wide layers may have needed none
    return chosen;
  }

  // Errors of layers' scores. Layers share a budget by absolute errors, because softmax sees those: a layer with large
  // scores changes more by the same relative error.
  LayerError score_errors(int64_t widest) {
    std::vector<double> sizes;
    for (size_t i = 0; i < layers_.size(); ++i)
      sizes.push_back(size_of_scores(collaborative_slices(maps(i), attention_of(widest), inputs(i))));
    return [this, sizes](size_t layer, int64_t width) {
      const bool exact = width == full_key_width(attention_);
      return exact ? 0 : sizes[layer] * error_at(layer, maps(layer), width);
    };
  }

  std::vector<int64_t> widths_to_try(int64_t parts) const {
    return tried_widths(full_key_width(attention_), key_width_step(attention_), parts);
  }

  double error_at(size_t layer, const HeadMaps& maps, int64_t width) {
    const double error =
        decompose_layer(maps, attention_of(width), inputs(layer), options_.decomposition, progress(layer, width)).error;
    ++tried_;
    if (stopped_) throw Interrupted("stopped while key widths were chosen; nothing was written");
    return error;
  }

  LayerReport fill(size_t layer, int64_t width, Scheme* target) {
    const auto started = std::chrono::steady_clock::now();
    DecompositionOptions decomposition = options_.decomposition;
    if (stopped_) decomposition.iterations = decomposition.restarts = 0;
    const Decomposition result =
        fill_collaborative(maps(layer), inputs(layer), decomposition, progress(layer, width), target);
    ++tried_;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
    return {.layer = layers_[layer].name,
            .key_width = width,
            .full_width = full_key_width(layer_options(layer)),
            .errors = result.errors,
            .error = result.error,
            .seconds = seconds.count()};
  }

  DecompositionProgress progress(size_t layer, int64_t width) {
    return [this, layer, width](int64_t iterations, double error) {
      if (observer_ == nullptr) return true;
      const auto most = static_cast<double>((1 + options_.decomposition.restarts) * options_.decomposition.iterations);
      const double done = static_cast<double>(tried_) + static_cast<double>(iterations) / most;
      const std::string what = join_text(layers_[layer].name, " of ", layers_.size(), ", key width ", width, ", error ",
                                         std::round(error * 1e4) / 1e4);
      if (!observer_({.done = done, .total = static_cast<double>(tries_), .what = what})) stopped_ = true;
      return !stopped_;
    };
  }

  const Model& source_;
  std::vector<AttentionLayer> layers_;
  const CollaborativeHeadsOptions& options_;
  const ConversionObserver& observer_;
  AttentionOptions attention_;
  NeededBiases needed_;
  std::vector<Moments> moments_;  // of each layer; empty without a sample
  int64_t tries_ = 1;             // decompositions in all
  int64_t tried_ = 0;
  bool stopped_ = false;
};

}  // namespace

Decoder to_collaborative(const Decoder& source, const CollaborativeHeadsOptions& options,
                         const ConversionObserver& observer, CollaborativeHeadsReport* report) {
  const at::NoGradGuard no_grad;
  return CollaborativeConversion<Decoder>(source, options, observer).run(report);
}

Encoder to_collaborative(const Encoder& source, const CollaborativeHeadsOptions& options,
                         const ConversionObserver& observer, CollaborativeHeadsReport* report) {
  const at::NoGradGuard no_grad;
  return CollaborativeConversion<Encoder>(source, options, observer).run(report);
}

EncoderDecoder to_collaborative(const EncoderDecoder& source, const CollaborativeHeadsOptions& options,
                                const ConversionObserver& observer, CollaborativeHeadsReport* report) {
  const at::NoGradGuard no_grad;
  HS_CHECK(
      options.width.key_width,
      "an encoder-decoder has one key width for all layers: give --key-width instead of --mean-key-width, --max-error "
      "or --max-parameters");
  HS_DCHECK(!options.sample.defined());
  return CollaborativeConversion<EncoderDecoder>(source, options, observer).run(report);
}

VisionTransformer to_collaborative(const VisionTransformer& source, const CollaborativeHeadsOptions& options,
                                   const ConversionObserver& observer, CollaborativeHeadsReport* report) {
  const at::NoGradGuard no_grad;
  return CollaborativeConversion<VisionTransformer>(source, options, observer).run(report);
}

}  // namespace headshare
