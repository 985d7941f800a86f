#include "headshare/tasks/translation/model_steps.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"

namespace headshare {
namespace {

// Moved lists the rows that get the content of another row: to[i] gets that of from[i].
struct Moved {
  std::vector<int64_t> from, to;
};

Moved moved(std::span<const int64_t> kept, int64_t rows_each) {
  Moved list;
  for (size_t i = 0; i < kept.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    if (kept[i] == place) continue;
    for (int64_t row = 0; row < rows_each; ++row) {
      list.from.push_back(kept[i] * rows_each + row);
      list.to.push_back(place * rows_each + row);
    }
  }
  return list;
}

Tensor on(c10::Device device, const std::vector<int64_t>& numbers) { return at::tensor(numbers, at::kLong).to(device); }

// Keeps the first `count` sequences, after those that moved took their places.
void shrink(std::vector<KvCache>* caches, const Moved& list, int64_t count) {
  for (KvCache& cache : *caches) {
    if (!list.from.empty()) cache.copy(list.from, list.to);
    cache.shrink(count);
  }
}

Tensor shrunk(const Tensor& rows, const Moved& list, int64_t count) {
  if (!rows.defined()) return rows;
  if (list.from.empty()) return rows.narrow(0, 0, count);
  return rows.index_copy(0, on(rows.device(), list.to), rows.index_select(0, on(rows.device(), list.from)))
      .narrow(0, 0, count);
}

}  // namespace

ModelSteps::ModelSteps(const EncoderDecoder& model, const PaddedIds& source, int64_t capacity)
    : model_(model), state_(model->new_state(capacity)) {
  HS_CHECK(!model->is_training(), "a model that translates must be in evaluation mode: it has no dropout");
  const at::NoGradGuard no_grad;
  source_ = model_->encode(source);
}

Tensor ModelSteps::next(const std::vector<int64_t>& last) {
  const at::NoGradGuard no_grad;
  const UsePackedWeights use(&weights_);
  const Tensor ids = on(model_->device(), last).unsqueeze(1);  // [N, 1]
  const Tensor hidden = model_->hidden(ids, source_, &state_).squeeze(1);
  source_.memory = Tensor();  // the caches of cross-attention have it now
  return model_->logits(hidden).to(at::kCPU, at::kFloat).contiguous();
}

void ModelSteps::widen(int64_t beam) {
  for (KvCache& cache : state_.own) cache.repeat(beam);
  beam_ = beam;
}

void ModelSteps::move(std::span<const RowMove> moves) {
  std::vector<int64_t> from, to;
  for (const RowMove& one : moves) {
    from.push_back(one.from);
    to.push_back(one.to);
  }
  for (KvCache& cache : state_.own) cache.copy(from, to);
}

void ModelSteps::keep(std::span<const int64_t> sentences) {
  const auto count = static_cast<int64_t>(sentences.size());
  const Moved alone = moved(sentences, 1);
  shrink(&state_.own, moved(sentences, beam_), count * beam_);
  shrink(&state_.cross, alone, count);
  source_.visible = shrunk(source_.visible, alone, count);
}

}  // namespace headshare
