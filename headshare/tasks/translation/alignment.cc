#include "headshare/tasks/translation/alignment.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/ops/head_attention/head_weights.h"

namespace headshare {
namespace {

Tensor row_of(std::span<const int32_t> ids, c10::Device device) {
  return at::tensor(std::vector<int64_t>(ids.begin(), ids.end()), at::kLong).unsqueeze(0).to(device);
}

// Returns what a cross-attention reads while the decoder runs over a target: [1, T, E].
Tensor read_by(Attention attention, const EncoderDecoder& model, const Tensor& ids, const EncodedSource& source) {
  Tensor seen;
  attention->observe([&seen](const Tensor& x, const HeadMask&, const Tensor&) { seen = x; });
  model->hidden(ids, source);
  attention->observe({});
  return seen;
}

}  // namespace

std::vector<int64_t> aligned_sources(const EncoderDecoder& model, std::span<const int32_t> source,
                                     const TextBorders& borders, std::span<const int32_t> target) {
  const int64_t text = static_cast<int64_t>(source.size()) - borders.size();
  HS_CHECK(text > 0, "a source of no tokens but its borders has nothing to align to");
  if (target.empty()) return {};
  const at::NoGradGuard no_grad;
  const EncodedSource encoded = model->encode({.ids = row_of(source, model->device())});
  std::vector<int32_t> inputs = {static_cast<int32_t>(model->options().marks.start)};
  inputs.insert(inputs.end(), target.begin(), target.end() - 1);
  const size_t layers = model->decoder()->layers();
  const Attention attention = model->decoder()->block(layers > 1 ? layers - 2 : 0)->cross_attention;
  const Tensor x = read_by(attention, model, row_of(inputs, model->device()), encoded);
  const PosedAttention asked = attention->pose(x, encoded.memory, {});
  const Tensor weights = head_weights(asked.posed.problem, asked.mask).mean(1).squeeze(0);  // [T, S]
  const Tensor places = weights.narrow(1, static_cast<int64_t>(borders.before.size()), text).argmax(1).cpu();
  const int64_t* first = places.const_data_ptr<int64_t>();
  return {first, first + places.numel()};
}

}  // namespace headshare
