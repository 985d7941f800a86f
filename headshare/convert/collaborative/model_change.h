// A model whose attention is being converted: what its layers read on a sample text, what became of its outputs, and
// how far the conversion has come.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "headshare/base/error.h"
#include "headshare/convert/collaborative/moments.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/decoder.h"
#include "headshare/models/encoder.h"
#include "headshare/models/encoder_decoder.h"
#include "headshare/models/vision.h"

namespace headshare {

// "layer 3" for 2.
std::string layer_name(size_t layer);

// The change of the model's answers on the sample.
struct AnswerChange {
  double divergence = -1;  // mean Kullback-Leibler divergence of the source's distribution from the converted one's: of
                           // the next (decoder) or own (masked-LM head) token, nats per token, or of an image's class,
                           // nats per image; -1: it has no such head
  double hidden = -1;      // |change of the last hidden states| / |hidden states|
  double loss_before = -1, loss_after = -1;  // of a decoder on the sample, nats per token; -1 of others
};

// A conversion has done `done` of `total` units, which take equally long, about.
struct ConversionProgress {
  double done = 0;
  double total = 1;
  std::string what;  // "layer 3 of 12, key width 384, error 0.123"
};
// False asks to stop: the layer at hand keeps its best so far, those that follow their starts.
using ConversionObserver = std::function<bool(const ConversionProgress&)>;

// Throws Error, naming the tensor and the numbers, where a value is not finite.
void check_finite(const NamedTensors& tensors, const std::string& of);

// Called with the rows of a sample that are done, and all; may throw to end the work.
using RowsObserver = std::function<void(int64_t done, int64_t total)>;

// Says so to `observer`, as a phase of its own. Throws Interrupted where that asks to stop.
RowsObserver rows_observer(const ConversionObserver& observer, const std::string& what);

// Samples are ids int64 [N, T], or of a vision transformer pixels float32 [N, C, S, S], as its scores() reads them;
// models are in evaluation mode and `source` and `target` of the same sizes.

// Runs a sample through a model, some rows at a time, and shows each layer's attention to the observer that `look`
// makes for it; of layers that share their parameters, every depth to the same one. The observers are taken away again
// whatever happens.
using LayerObservers = std::function<AttentionImpl::Observer(size_t layer)>;
void watch_layers(const Decoder& model, const Tensor& sample, const LayerObservers& look);
void watch_layers(const Encoder& model, const Tensor& sample, const LayerObservers& look);

// The moments of each layer, by its sums. Throws Error, naming the layer, where they are not finite.
std::vector<Moments> moments_of(const std::vector<MomentSums>& layers);

// The moments of what the attention of each layer reads.
std::vector<Moments> layer_moments(const Decoder& model, const Tensor& sample, const RowsObserver& observer = {});
std::vector<Moments> layer_moments(const Encoder& model, const Tensor& sample, const RowsObserver& observer = {});
std::vector<Moments> layer_moments(const VisionTransformer& model, const Tensor& sample,
                                   const RowsObserver& observer = {});

// |change| / |before| over all that was added; 0 where all of it was 0.
class OutputChange {
 public:
  void add(const Tensor& before, const Tensor& after);
  double relative() const;

 private:
  double change_ = 0, of_ = 0;  // sums of squares
};

// |change of the layer's output| / |output| of each layer, where it reads what it read in the source.
std::vector<double> output_changes(const Decoder& source, const Decoder& target, const Tensor& sample,
                                   const RowsObserver& observer = {});
std::vector<double> output_changes(const Encoder& source, const Encoder& target, const Tensor& sample,
                                   const RowsObserver& observer = {});
std::vector<double> output_changes(const VisionTransformer& source, const VisionTransformer& target,
                                   const Tensor& sample, const RowsObserver& observer = {});

AnswerChange answer_change(const Decoder& source, const Decoder& target, const Tensor& sample,
                           const RowsObserver& observer = {});
AnswerChange answer_change(const Encoder& source, const Encoder& target, const Tensor& sample,
                           const RowsObserver& observer = {});
AnswerChange answer_change(const VisionTransformer& source, const VisionTransformer& target, const Tensor& sample,
                           const RowsObserver& observer = {});

// Throws Error where it is not finite; `of` names it.
void check_change(double change, const std::string& of);

// Both, in a report with `layers`, `change` and `stopped`. Once the conversion was stopped nothing more is computed; a
// stop in between leaves them out, because the conversion itself is finished and worth keeping.
template <class Model, class Report>
void report_changes(const Model& source, const Model& target, const Tensor& sample, const ConversionObserver& observer,
                    Report* report) try {
  if (report->stopped) return;
  const std::vector<double> changes =
      output_changes(source, target, sample, rows_observer(observer, "changes of layers"));
  for (size_t i = 0; i < changes.size(); ++i) {
    check_change(changes[i], layer_name(i) + ": the change of its output");
    report->layers[i].output_change = changes[i];
  }
  report->change = answer_change(source, target, sample, rows_observer(observer, "changes of answers"));
  for (const double one : {report->change.divergence, report->change.hidden, report->change.loss_after}) {
    check_change(one, "the change of the model's answers");
  }
} catch (const Interrupted&) {
}

void copy_all_but_attention(const Decoder& source, const Decoder& target);
void copy_all_but_attention(const Encoder& source, const Encoder& target);
void copy_all_but_attention(const EncoderDecoder& source, const EncoderDecoder& target);
void copy_all_but_attention(const VisionTransformer& source, const VisionTransformer& target);

// True for models that take a sample of text.
template <class Model>
inline constexpr bool kReadsTexts = std::is_same_v<Model, Decoder> || std::is_same_v<Model, Encoder>;

// True for models whose conversions take a sample, of text or of images: an encoder-decoder would need pairs.
template <class Model>
inline constexpr bool kReadsSamples = kReadsTexts<Model> || std::is_same_v<Model, VisionTransformer>;

}  // namespace headshare
