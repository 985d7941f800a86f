#include "headshare/decode/beam/beam_search.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/decode/beam/row_slots.h"
#include "headshare/decode/beam/sentence_search.h"
#include "headshare/ops/parallel.h"

namespace headshare {
namespace {

constexpr int64_t kScoresForThreads = 1 << 18;  // fewer are faster in one thread

void check_request(const SearchRequest& request) {
  check_beam_options(request.options);
  HS_CHECK(!request.sampling || request.options.beam == 1, "sampling draws one hypothesis: set beam to 1, it is ",
           request.options.beam, ", or do not sample");
}

class BatchSearch {
 public:
  BatchSearch(StepScores& model, const SearchRequest& request)
      : model_(model),
        beam_(request.options.beam),
        rules_(request),
        each_step_(request.each_step),
        results_(request.sentences.size()) {
    for (size_t i = 0; i < request.sentences.size(); ++i) active_.emplace_back(request, rules_, i);
  }

  std::vector<std::vector<Hypothesis>> run() {
    while (!active_.empty()) {
      if (each_step_) each_step_();
      const Tensor raw = next_scores();
      const std::vector<RowMove> moves = step(raw);
      if (!moves.empty()) model_.move(moves);
      drop_finished();
      widen();
    }
    return std::move(results_);
  }

 private:
  int64_t rows() const { return static_cast<int64_t>(active_.size()) * width_; }

  // Returns the scores [N, V], checked.
  Tensor next_scores() {
    std::vector<int64_t> last;
    for (const SentenceSearch& one : active_) last.insert(last.end(), one.last().begin(), one.last().begin() + width_);
    Tensor raw = model_.next(last);
    HS_CHECK(raw.defined() && raw.dim() == 2 && raw.size(0) == rows() && raw.size(1) > 0, "the model must score [",
             rows(), ", V] next tokens, not ", raw.defined() ? raw.sizes() : at::IntArrayRef());
    HS_CHECK(raw.device().is_cpu() && raw.scalar_type() == at::kFloat,
             "the scores of next tokens must be float32 on the CPU, not ", raw.scalar_type(), " on ", raw.device());
    if (!scratch_.defined()) {
      rules_.check_vocabulary(raw.size(1));
      scratch_ = at::empty({threads_.threads, beam_, raw.size(1)}, at::kFloat);
    }
    HS_CHECK(raw.size(1) == scratch_.size(2), "the model scored ", scratch_.size(2), " tokens at first and ",
             raw.size(1), " now: the vocabulary must not change");
    return raw.contiguous();
  }

  // Advances all sentences and returns their moves as rows of the batch. Each sentence's log probabilities are used
  // while they are in the cache.
  std::vector<RowMove> step(const Tensor& raw) {
    std::vector<std::vector<RowMove>> moves(active_.size());
    const kernels::Parallel& threads = raw.numel() < kScoresForThreads ? serial_ : threads_;
    threads.run(static_cast<int64_t>(active_.size()), [&](int64_t i, int64_t thread) {
      const c10::InferenceMode inference;  // threads do not inherit the caller's, whose tensors they write into
      const Tensor rows = raw.narrow(0, i * width_, width_);
      Tensor log_probabilities = scratch_[thread];
      const int64_t together = threads_.threads == 1 ? width_ : 1;  // libtorch would wake its threads for two rows
      for (int64_t row = 0; row < width_; row += together) {
        Tensor out = log_probabilities.narrow(0, row, together);
        at::log_softmax_out(out, rows.narrow(0, row, together), 1);
      }
      const auto place = static_cast<size_t>(i);
      moves[place] = active_[place].step({.raw = rows.data_ptr<float>(),
                                          .log_probabilities = log_probabilities.data_ptr<float>(),
                                          .vocabulary = raw.size(1)});
    });
    std::vector<RowMove> all;
    for (size_t i = 0; i < moves.size(); ++i) {
      const int64_t first = static_cast<int64_t>(i) * width_;
      for (const RowMove& one : moves[i]) all.push_back({.from = first + one.from, .to = first + one.to});
    }
    return all;
  }

  void drop_finished() {
    std::vector<bool> finished;
    for (const SentenceSearch& one : active_) {
      finished.push_back(one.done());
      if (one.done()) results_[one.index()] = one.results();
    }
    const std::vector<int64_t> order = plan_keep(finished);
    if (order.size() == active_.size()) return;
    if (!order.empty()) model_.keep(order);
    std::vector<SentenceSearch> left;
    for (const int64_t from : order) left.push_back(std::move(active_[static_cast<size_t>(from)]));
    active_ = std::move(left);
  }

  // Until hypotheses of some sentence differ, one row does for each.
  void widen() {
    const auto differs = [](const SentenceSearch& one) { return !one.rows_agree(); };
    if (width_ == beam_ || std::none_of(active_.begin(), active_.end(), differs)) return;
    model_.widen(beam_);
    width_ = beam_;
  }

  StepScores& model_;
  int64_t beam_;
  int64_t width_ = 1;  // rows of a sentence
  TokenRules rules_;
  std::function<void()> each_step_;
  std::vector<SentenceSearch> active_ = {};
  kernels::Parallel serial_ = kernels::serial();
  kernels::Parallel threads_ = torch_threads();
  Tensor scratch_ = {};  // [threads, beam, V]
  std::vector<std::vector<Hypothesis>> results_;
};

}  // namespace

std::vector<std::vector<Hypothesis>> beam_search(StepScores& model, const SearchRequest& request) {
  check_request(request);
  return BatchSearch(model, request).run();
}

}  // namespace headshare
