#include "headshare/analyze/analyze_model.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "headshare/analyze/conversions.h"
#include "headshare/analyze/layer_time.h"
#include "headshare/analyze/seen_layer.h"
#include "headshare/analyze/seen_scores.h"
#include "headshare/analyze/similarity.h"
#include "headshare/analyze/spectra.h"
#include "headshare/attention/scheme_record.h"
#include "headshare/attention/schemes/collaborative.h"
#include "headshare/base/error.h"
#include "headshare/base/proc.h"
#include "headshare/convert/shared_heads/shared_layer.h"
#include "headshare/models/model_kind.h"
#include "headshare/report/statistics/speeds.h"

namespace headshare {
namespace {

constexpr int64_t kMostTimedTokens = 4096;
// These are parts of a layer's work, in units of Conversion::work.
constexpr double kReadWork = 5;      // running the text, twice
constexpr double kSpectraWork = 10;  // spectra and similarities

template <class Model>
class Analysis {
 public:
  Analysis(const Model& source, const AnalysisOptions& options, const ConversionObserver& observer)
      : source_(source), options_(options), observer_(observer), attention_(source->options().attention) {
    check_source();
    result_.refusal = why_not_by_weights(attention_);
    const ConversionSource from = conversion_source();
    needed_ = from.needed;
    conversions_ = conversions(from);
    double work = kSpectraWork + (options.sample.defined() ? 2 * kReadWork : 0);
    for (Conversion& one : conversions_) {
      if (!by_weights()) one.work = 0;
      work += one.work;
    }
    total_ = static_cast<double>(source_->layers()) * work;
  }

  HeadAnalysis run() {
    describe();
    watch();
    measure_times();
    for (size_t i = 0; i < source_->layers(); ++i) {
      if (!by_weights()) {
        add_seen_layer(i);
        continue;
      }
      const HeadMaps layer = maps(i);
      add_layer(i, weighed_slices(i, layer));
      for (size_t k = 0; k < conversions_.size(); ++k) add_cost(i, layer, k);
    }
    return std::move(result_);
  }

 private:
  bool by_weights() const { return result_.refusal.empty(); }
  const AttentionOptions& layer_options(size_t layer) const { return source_->attention(layer)->scheme().options(); }
  HeadMaps maps(size_t layer) const { return head_maps(source_->attention(layer)->scheme(), layer_name(layer)); }

  void check_source() const {
    HS_CHECK(attention_.heads > 1, "analyze compares heads, and this model has only one");
    HS_CHECK(!scheme_record(attention_.scheme).shares_key_width || !attention_.rotary ||
                 attention_.own.get<CollaborativeOptions>().rotary_width,
             "this collaborative model mixes dimensions of queries that rotary positions turn, one by one, so that its "
             "heads have no maps that hold at every distance (--rotary-width); analyze the model that it was made "
             "from");
  }

  // Returns what the conversions have to know, after a look at the weights of all layers.
  ConversionSource conversion_source() const {
    ConversionSource from{.attention = attention_, .full_width = full_width(), .widths = options_.widths};
    if (!by_weights()) {
      from.needed = {attention_.projection_bias, attention_.content_bias};
      from.needs_biases = attention_.projection_bias;
      for (size_t i = 0; i < source_->layers(); ++i) check_comparable(source_->attention(i)->scheme(), layer_name(i));
      return from;
    }
    for (size_t i = 0; i < source_->layers(); ++i) {
      const HeadMaps layer = maps(i);
      const NeededBiases needed = needed_biases(layer, attention_);
      from.needed = {from.needed.projection || needed.projection, from.needed.content || needed.content};
      from.needs_biases = from.needs_biases || needs_biases(layer, attention_);
    }
    return from;
  }

  // Returns the least full width of all layers.
  int64_t full_width() const {
    int64_t least = full_key_width(layer_options(0));
    for (size_t i = 1; i < source_->layers(); ++i) least = std::min(least, full_key_width(layer_options(i)));
    return least;
  }

  LayerInputs inputs(size_t layer) const {
    if (moments_.empty()) return {};
    return {.query = &moments_[layer], .key = &moments_[layer]};
  }

  auto options_with(const AttentionOptions& attention) const {
    auto options = source_->options();
    options.attention = attention;
    options.layer_key_widths.clear();
    return resolve(options);
  }

  void describe() {
    const auto& options = source_->options();
    result_.kind = ModelOptions(options).kind().name();
    result_.scheme = attention_.scheme;
    result_.layers = static_cast<int64_t>(source_->layers());
    result_.depth = options.layers;
    result_.heads = attention_.heads;
    result_.full_key_width = full_width();
    result_.head_width = compared_width(attention_);
    result_.rotary = attention_.rotary;
    result_.iterations = options_.decomposition.iterations;
    result_.convert_iterations = DecompositionOptions().iterations;
    result_.before.scheme = result_.before.name = attention_.scheme;
    result_.before.size = measure(options);
    for (const Conversion& one : conversions_) {
      result_.conversions.push_back({.scheme = one.scheme,
                                     .name = one.name,
                                     .command = by_weights() ? one.command : "",
                                     .impossible = one.impossible,
                                     .layers = {}});
      if (one.impossible.empty()) result_.conversions.back().size = measure(options_with(one.attention));
    }
  }

  // Runs the sample and keeps what it shows of each layer.
  void watch() {
    if constexpr (kReadsTexts<Model>) watch_sample();
  }

  void watch_sample() {
    if (!options_.sample.defined()) return;
    by_weights() ? watch_inputs() : watch_scores();
    const Tensor part = first_tokens(options_.sample, options_.map_tokens);
    check_seen_memory(part.numel(), attention_.d_model, result_.depth);
    seen_ = std::vector<SeenLayer>(source_->layers());
    run("where heads look in the text", part,
        [this](size_t i, const Tensor& x, const HeadMask& mask, const Tensor& output) {
          seen_[i].add(source_->attention(i), x, mask, output);
        });
    result_.text_tokens = options_.sample.numel();
    result_.map_tokens = part.numel();
  }

  void watch_inputs() {
    std::vector<MomentSums> sums(source_->layers());
    run("what layers read in the text", options_.sample,
        [&sums](size_t i, const Tensor& x, const HeadMask&, const Tensor&) { sums[i].add(x); });
    moments_ = moments_of(sums);
  }

  void watch_scores() {
    scores_ = std::vector<SeenScores>(source_->layers());
    run("what heads compare in the text", options_.sample,
        [this](size_t i, const Tensor& x, const HeadMask&, const Tensor&) {
          HS_CHECK(at::isfinite(x).all().template item<bool>(), layer_name(i),
                   ": what it reads in the text is not finite (NaN or infinite); repair the model or take an earlier "
                   "checkpoint");
          scores_[i].add(source_->attention(i)->scheme(), x);
        });
  }

  // Runs rows through the model, and says after each layer how far it is.
  void run(const std::string& what, const Tensor& rows,
           const std::function<void(size_t layer, const Tensor&, const HeadMask&, const Tensor&)>& look) {
    tell(what);
    // A layer reads each row once at every depth that it stands at.
    const double each =
        kReadWork * static_cast<double>(result_.layers) / static_cast<double>(result_.depth * rows.size(0));
    watch_layers(source_, rows, [&](size_t i) {
      return [&, i](const Tensor& x, const HeadMask& mask, const Tensor& output) {
        look(i, x, mask, output);
        done_ += each * static_cast<double>(x.size(0));
        tell(what);
      };
    });
  }

  void measure_times() {
    const LayerWork work{.decoding = ModelOptions(source_->options()).kind().is_causal(),
                         .tokens = std::min(source_->options().context, kMostTimedTokens)};
    std::vector<AttentionOptions> layers = {layer_options(0)};
    for (const Conversion& one : conversions_) {
      if (one.impossible.empty()) layers.push_back(one.attention);
    }
    const TurnOptions turns{.most_rounds = 25, .between = [this] { tell("how long attention takes"); }};
    const WaitMeter machine(at::get_num_threads());
    const std::vector<double> times = layer_milliseconds(layers, work, turns);
    result_.busy = machine.share().value_or(0) >= kBusyWait;
    result_.timed_tokens = work.tokens;
    result_.before.milliseconds = times.front();
    auto next = times.begin() + 1;
    for (ConversionAnalysis& one : result_.conversions) {
      if (one.impossible.empty()) one.milliseconds = *next++;
    }
  }

  // A layer's weighed maps do not depend on the width they are to be approximated with.
  HeadSlices weighed_slices(size_t i, const HeadMaps& layer) const {
    const AttentionOptions& own = layer_options(i);
    return collaborative_slices(layer, collaborative_options(own, full_key_width(own), needed_), inputs(i));
  }

  void add_layer(size_t i, const HeadSlices& slices) {
    tell(join_text("spectra of ", layer_name(i), " of ", source_->layers()));
    const int64_t width = full_key_width(layer_options(i));
    result_.layer.push_back({.layer = layer_name(i),
                             .heads = head_spectra(slices),
                             .joint = joint_spectrum(slices, width),
                             .stacked = stacked_spectrum(slices, width),
                             .weights = weight_similarity(slices),
                             .maps = seen_.empty() ? HeadSimilarity() : seen_[i].maps.similarity()});
    done_ += kSpectraWork;
  }

  void add_seen_layer(size_t i) {
    if (!scores_.empty()) return add_layer(i, scores_[i].slices());
    result_.layer.push_back(
        {.layer = layer_name(i), .heads = {}, .joint = {}, .stacked = {}, .weights = {}, .maps = {}});
    done_ += kSpectraWork;
  }

  void add_cost(size_t i, const HeadMaps& layer, size_t which) {
    const Conversion& conversion = conversions_[which];
    if (conversion.impossible.empty()) {
      const std::string what = join_text(layer_name(i), " of ", source_->layers(), ", ", conversion.name);
      tell(what);
      const DecompositionProgress progress = [&](int64_t iterations, double) {
        const auto most = static_cast<double>(std::max<int64_t>(1, options_.decomposition.iterations));
        tell(what, conversion.work * std::min(1.0, static_cast<double>(iterations) / most));
        return true;
      };
      Attention target = working_layer(conversion.attention);
      LayerCost cost = conversion.fill({layer, inputs(i), options_.decomposition, progress}, &target->scheme());
      if (!seen_.empty()) cost.output = seen_[i].output_change(target);
      check_cost(cost, layer_name(i), conversion.name);
      result_.conversions[which].layers.push_back(cost);
    }
    done_ += conversion.work;
  }

  static void check_cost(const LayerCost& cost, const std::string& layer, const std::string& conversion) {
    HS_CHECK(std::isfinite(cost.scores) && std::isfinite(cost.values), layer, ": the error of a conversion to ",
             conversion,
             " is not finite: its weights are too large to compute with; repair the model or take an "
             "earlier checkpoint");
    HS_CHECK(std::isfinite(cost.output.value_or(0)), layer, ": the change of its output by a conversion to ",
             conversion,
             " is not finite: on the text its numbers are too large for float32; leave --text out to "
             "compare weights alone, or take an earlier checkpoint");
  }

  void tell(const std::string& what, double part = 0) {
    if (observer_ == nullptr || observer_({.done = done_ + part, .total = total_, .what = what})) return;
    throw Interrupted("stopped; nothing was written");
  }

  const Model& source_;
  const AnalysisOptions& options_;
  const ConversionObserver& observer_;
  AttentionOptions attention_;
  NeededBiases needed_;
  std::vector<Conversion> conversions_;
  std::vector<Moments> moments_;    // of each layer; empty without a sample
  std::vector<SeenScores> scores_;  // of each layer where weights do not say what heads compare; empty without a sample
  std::vector<SeenLayer> seen_;     // of each layer; empty without a sample
  HeadAnalysis result_;
  double done_ = 0, total_ = 1;
};

}  // namespace

HeadAnalysis analyze_heads(const Decoder& source, const AnalysisOptions& options, const ConversionObserver& observer) {
  const at::NoGradGuard no_grad;
  return Analysis<Decoder>(source, options, observer).run();
}

HeadAnalysis analyze_heads(const Encoder& source, const AnalysisOptions& options, const ConversionObserver& observer) {
  const at::NoGradGuard no_grad;
  return Analysis<Encoder>(source, options, observer).run();
}

HeadAnalysis analyze_heads(const VisionTransformer& source, const AnalysisOptions& options,
                           const ConversionObserver& observer) {
  const at::NoGradGuard no_grad;
  HS_DCHECK(!options.sample.defined());
  return Analysis<VisionTransformer>(source, options, observer).run();
}

}  // namespace headshare
