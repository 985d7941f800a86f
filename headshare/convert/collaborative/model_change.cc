#include "headshare/convert/collaborative/model_change.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/models/checkpoint.h"

namespace headshare {
namespace {

Tensor hidden_of(const Decoder& model, const Tensor& ids) { return model->hidden(ids); }
Tensor hidden_of(const Encoder& model, const Tensor& ids) { return model->hidden({.ids = ids}); }
Tensor hidden_of(const VisionTransformer& model, const Tensor& pixels) { return model->hidden(pixels); }
bool has_logits(const Decoder&) { return true; }
bool has_logits(const Encoder& model) { return model->options().masked_head; }

// Rows of a sample that go through a model at once.
constexpr int64_t kRows = 8;

template <class Take>
void for_rows(const Tensor& sample, const RowsObserver& observer, const Take& take) {
  for (int64_t first = 0; first < sample.size(0); first += kRows) {
    if (observer) observer(first, sample.size(0));
    take(sample.slice(0, first, first + kRows));
  }
}

template <class Model>
void watch(const Model& model, const Tensor& sample, const LayerObservers& look, const RowsObserver& observer = {}) {
  struct Watched {
    const Model& model;
    ~Watched() {
      for (size_t i = 0; i < model->layers(); ++i) model->attention(i)->observe(nullptr);
    }
  } const watched{model};
  for (size_t i = 0; i < model->layers(); ++i) model->attention(i)->observe(look(i));
  for_rows(sample, observer, [&](const Tensor& rows) { hidden_of(model, rows); });
}

template <class Model>
std::vector<Moments> moments_of_layers(const Model& model, const Tensor& sample, const RowsObserver& observer) {
  std::vector<MomentSums> sums(model->layers());
  const auto look = [&](size_t i) {
    return [&sums, i](const Tensor& x, const HeadMask&, const Tensor&) { sums[i].add(x); };
  };
  watch(model, sample, look, observer);
  return moments_of(sums);
}

template <class Model>
std::vector<double> changes_of_outputs(const Model& source, const Model& target, const Tensor& sample,
                                       const RowsObserver& observer) {
  std::vector<OutputChange> changes(source->layers());
  const auto look = [&](size_t i) {
    return [&changes, i, other = target->attention(i)](const Tensor& x, const HeadMask& mask, const Tensor& output) {
      changes[i].add(output, other->self(x, mask));
    };
  };
  watch(source, sample, look, observer);
  std::vector<double> relative;
  for (const OutputChange& one : changes) relative.push_back(one.relative());
  return relative;
}

// Sums over tokens.
struct AnswerSums {
  double divergence = 0;
  double loss_before = 0, loss_after = 0;
};

// -log p of each token, summed: log probabilities [T, V], ids [T].
double loss_of(const Tensor& log_probabilities, const Tensor& ids) {
  return -log_probabilities.gather(1, ids.unsqueeze(1)).sum().item<double>();
}

// Hidden states [T, E] of both models; `next` are the ids that follow, as many or one fewer. Scores of few tokens at a
// time: vocabularies are large.
template <class Model>
void add_answers(const Model& source, const Model& target, const Tensor& before, const Tensor& after,
                 const Tensor& next, AnswerSums* sums) {
  constexpr int64_t kTokens = 64;
  for (int64_t first = 0; first < before.size(0); first += kTokens) {
    const Tensor p = source->logits(before.slice(0, first, first + kTokens)).to(at::kDouble).log_softmax(-1);
    const Tensor q = target->logits(after.slice(0, first, first + kTokens)).to(at::kDouble).log_softmax(-1);
    sums->divergence += (p.exp() * (p - q)).sum().template item<double>();
    const Tensor ids = next.slice(0, first, first + kTokens);
    sums->loss_before += loss_of(p.slice(0, 0, ids.size(0)), ids);
    sums->loss_after += loss_of(q.slice(0, 0, ids.size(0)), ids);
  }
}

template <class Model>
AnswerChange change_of_answers(const Model& source, const Model& target, const Tensor& sample,
                               const RowsObserver& observer) {
  constexpr bool kNextToken = std::is_same_v<Model, Decoder>;
  OutputChange hidden;
  AnswerSums sums;
  for (int64_t row = 0; row < sample.size(0); ++row) {
    if (observer) observer(row, sample.size(0));
    const Tensor ids = sample.slice(0, row, row + 1);
    const Tensor before = hidden_of(source, ids);
    const Tensor after = hidden_of(target, ids);
    hidden.add(before, after);
    if (has_logits(source)) add_answers(source, target, before[0], after[0], ids[0].slice(0, 1), &sums);
  }
  AnswerChange change{.hidden = hidden.relative()};
  // Rounding may leave less than nothing; what is not a number stays that.
  if (has_logits(source)) change.divergence = std::max(sums.divergence / static_cast<double>(sample.numel()), 0.0);
  const auto predicted = static_cast<double>(sample.size(0) * (sample.size(1) - 1));
  if (kNextToken && predicted > 0) {
    change.loss_before = sums.loss_before / predicted;
    change.loss_after = sums.loss_after / predicted;
  }
  return change;
}

// Returns the sum of the divergences of the source's class distributions from the target's.
double divergence_of_classes(const VisionTransformer& source, const VisionTransformer& target, const Tensor& pixels) {
  const Tensor p = source->scores(pixels).to(at::kDouble).log_softmax(-1);
  const Tensor q = target->scores(pixels).to(at::kDouble).log_softmax(-1);
  return (p.exp() * (p - q)).sum().item<double>();
}

template <class Model>
void copy_the_rest(const Model& source, const Model& target) {
  const NamedTensors from = model_tensors(*source);
  check_finite(from, "the model");
  NamedTensors to = model_tensors(*target);
  for (const auto& [name, tensor] : from) {
    if (name.find("attention.scheme.") == std::string::npos) to.at(name).copy_(tensor);
  }
}

}  // namespace

void check_finite(const NamedTensors& tensors, const std::string& of) {
  for (const auto& [name, tensor] : tensors) {
    const int64_t bad = tensor.numel() - at::isfinite(tensor).sum().item<int64_t>();
    HS_CHECK(bad == 0, of, ": ", bad, " of ", tensor.numel(), " values of ", name,
             " are not finite (NaN or infinite); repair the model or take an earlier checkpoint");
  }
}

void check_change(double change, const std::string& of) {
  HS_CHECK(std::isfinite(change), of, " on the sample is not a number: there the model computes numbers that are too ",
           "large for float32; nothing was written. Repair the model, or take an earlier checkpoint");
}

std::string layer_name(size_t layer) { return join_text("layer ", layer + 1); }

std::vector<Moments> moments_of(const std::vector<MomentSums>& layers) {
  std::vector<Moments> moments;
  for (const MomentSums& one : layers) {
    moments.push_back(one.moments());
    HS_CHECK(at::isfinite(moments.back().second).all().item<bool>(), layer_name(moments.size() - 1),
             ": what it reads in the sample is not finite (NaN or infinite): the weights before it are damaged, or "
             "training diverged; repair the model or take an earlier checkpoint");
  }
  return moments;
}

void OutputChange::add(const Tensor& before, const Tensor& after) {
  change_ += (after - before).square().sum(at::kDouble).item<double>();
  of_ += before.square().sum(at::kDouble).item<double>();
}

double OutputChange::relative() const { return of_ == 0 ? 0 : std::sqrt(change_ / of_); }

void watch_layers(const Decoder& model, const Tensor& sample, const LayerObservers& look) {
  watch(model, sample, look);
}
void watch_layers(const Encoder& model, const Tensor& sample, const LayerObservers& look) {
  watch(model, sample, look);
}

std::vector<Moments> layer_moments(const Decoder& model, const Tensor& sample, const RowsObserver& observer) {
  return moments_of_layers(model, sample, observer);
}
std::vector<Moments> layer_moments(const Encoder& model, const Tensor& sample, const RowsObserver& observer) {
  return moments_of_layers(model, sample, observer);
}
std::vector<Moments> layer_moments(const VisionTransformer& model, const Tensor& sample, const RowsObserver& observer) {
  return moments_of_layers(model, sample, observer);
}

std::vector<double> output_changes(const Decoder& source, const Decoder& target, const Tensor& sample,
                                   const RowsObserver& observer) {
  return changes_of_outputs(source, target, sample, observer);
}
std::vector<double> output_changes(const Encoder& source, const Encoder& target, const Tensor& sample,
                                   const RowsObserver& observer) {
  return changes_of_outputs(source, target, sample, observer);
}
std::vector<double> output_changes(const VisionTransformer& source, const VisionTransformer& target,
                                   const Tensor& sample, const RowsObserver& observer) {
  return changes_of_outputs(source, target, sample, observer);
}

AnswerChange answer_change(const Decoder& source, const Decoder& target, const Tensor& sample,
                           const RowsObserver& observer) {
  return change_of_answers(source, target, sample, observer);
}
AnswerChange answer_change(const Encoder& source, const Encoder& target, const Tensor& sample,
                           const RowsObserver& observer) {
  return change_of_answers(source, target, sample, observer);
}

AnswerChange answer_change(const VisionTransformer& source, const VisionTransformer& target, const Tensor& sample,
                           const RowsObserver& observer) {
  const bool with_head = source->options().classes > 0;
  OutputChange hidden;
  double divergence = 0;
  for_rows(sample, observer, [&](const Tensor& pixels) {
    hidden.add(source->hidden(pixels), target->hidden(pixels));
    if (with_head) divergence += divergence_of_classes(source, target, pixels);
  });
  AnswerChange change{.hidden = hidden.relative()};
  // Rounding may leave less than nothing; what is not a number stays that.
  if (with_head) change.divergence = std::max(divergence / static_cast<double>(sample.size(0)), 0.0);
  return change;
}

RowsObserver rows_observer(const ConversionObserver& observer, const std::string& what) {
  return [observer, what](int64_t done, int64_t total) {
    if (observer == nullptr) return;
    const ConversionProgress now{.done = static_cast<double>(done), .total = static_cast<double>(total), .what = what};
    if (!observer(now)) throw Interrupted("stopped; nothing was written");
  };
}

void copy_all_but_attention(const Decoder& source, const Decoder& target) { copy_the_rest(source, target); }
void copy_all_but_attention(const Encoder& source, const Encoder& target) { copy_the_rest(source, target); }
void copy_all_but_attention(const EncoderDecoder& source, const EncoderDecoder& target) {
  copy_the_rest(source, target);
}
void copy_all_but_attention(const VisionTransformer& source, const VisionTransformer& target) {
  copy_the_rest(source, target);
}

}  // namespace headshare
