#include "headshare/convert/share/share_model.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>

#include "headshare/base/error.h"

namespace headshare {
namespace {

template <class Model>
class Sharing {
 public:
  Sharing(const Model& source, const SharingOptions& options, const ConversionTold& told)
      : source_(source), options_(options), told_(told), attention_(source->options().attention) {
    if (options.sample.defined()) moments_ = layer_moments(source, options.sample);
  }

  Model run(SharingReport* report) {
    auto options = source_->options();
    options.attention = shared_options(attention_, options_.to, any_needs_biases());
    options.layer_key_widths.clear();
    Model target(resolve(options));
    target->eval();
    copy_all_but_attention(source_, target);
    for (size_t i = 0; i < source_->layers(); ++i) report->layers.push_back(fill(i, target));
    report->stopped = stopped_;
    if (!options_.sample.defined()) return target;
    const std::vector<double> changes = output_changes(source_, target, options_.sample);
    for (size_t i = 0; i < changes.size(); ++i) report->layers[i].output_change = changes[i];
    report->change = answer_change(source_, target, options_.sample);
    return target;
  }

 private:
  HeadMaps maps(size_t layer) const { return head_maps(source_->attention(layer)->scheme(), layer_name(layer)); }

  bool any_needs_biases() const {
    bool any = false;
    for (size_t i = 0; i < source_->layers(); ++i) any = needs_biases(maps(i), attention_) || any;
    return any;
  }

  SharedLayerReport fill(size_t layer, const Model& target) {
    const auto started = std::chrono::steady_clock::now();
    const HeadMaps heads = maps(layer);
    SharingTask task{.maps = heads,
                     .pooling = options_.to.pooling,
                     .decomposition = options_.decomposition,
                     .progress = progress(layer)};
    if (!moments_.empty()) task.inputs = {.query = &moments_[layer], .key = &moments_[layer]};
    if (stopped_) task.decomposition.iterations = task.decomposition.restarts = 0;
    const SharedResult result = fill_shared(task, &target->attention(layer)->scheme());
    tell(static_cast<double>(layer + 1), layer_name(layer));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
    return {.layer = layer_name(layer), .result = result, .seconds = seconds.count()};
  }

  DecompositionProgress progress(size_t layer) {
    return [this, layer](int64_t iterations, double error) {
      const auto most = static_cast<double>((1 + options_.decomposition.restarts) * options_.decomposition.iterations);
      const double done = static_cast<double>(layer) + static_cast<double>(iterations) / most;
      tell(done, join_text(layer_name(layer), ", error ", std::round(error * 1e4) / 1e4));
      return !stopped_;
    };
  }

  void tell(double done, const std::string& what) {
    if (told_ == nullptr) return;
    const auto total = static_cast<double>(source_->layers());
    if (!told_({.done = done, .total = total, .what = what})) stopped_ = true;
  }

  const Model& source_;
  const SharingOptions& options_;
  const ConversionTold& told_;
  AttentionOptions attention_;
  std::vector<Moments> moments_;  // of each layer; empty without a sample
  bool stopped_ = false;
};

}  // namespace

Decoder to_shared(const Decoder& source, const SharingOptions& options, const ConversionTold& told,
                  SharingReport* report) {
  const at::NoGradGuard no_grad;
  return Sharing<Decoder>(source, options, told).run(report);
}

Encoder to_shared(const Encoder& source, const SharingOptions& options, const ConversionTold& told,
                  SharingReport* report) {
  const at::NoGradGuard no_grad;
  return Sharing<Encoder>(source, options, told).run(report);
}

}  // namespace headshare
