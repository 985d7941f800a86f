#include "headshare/tasks/masked/evaluate_masked.h"

#include <ATen/ATen.h>

#include <cstring>

#include "headshare/base/error.h"
#include "headshare/tasks/evaluation_mode.h"

namespace headshare {
namespace {

// The masks are the same for every run.
uint64_t mask_key_of_evaluations() { return stream_key(0, "masks of evaluations"); }

// Returns a perplexity by another name.
Score renamed(const char* name, const LanguageSums& sums, const char* objective, const std::string& tokenizer,
              const MaskedSetup& setup) {
  Score score = perplexity(sums, {.objective = objective,
                                  .tokenizer = tokenizer,
                                  .context = setup.context,
                                  .stride = Masker::room(setup.context)});
  score.signature.replace(0, score.name.size(), name);
  score.name = name;
  return score;
}

double summed(const Tensor& losses) { return losses.sum(at::kDouble).item<double>(); }

}  // namespace

EncoderInput to_input(const WindowBatch& batch, c10::Device device) {
  EncoderInput input{.ids = at::tensor(batch.ids, at::kLong).view({batch.rows, batch.length}).to(device)};
  if (batch.padded()) {
    const Tensor lengths = at::tensor(batch.lengths, at::kLong).unsqueeze(1);  // [B, 1]
    input.visible = (at::arange(batch.length) < lengths).to(device);
  }
  if (!batch.loose_signatures.empty()) {
    static_assert(sizeof(Signature) == 2 * sizeof(int64_t));
    const auto count = static_cast<int64_t>(batch.loose_signatures.size());
    input.loose_signatures = at::empty({count, 2}, at::kLong);
    std::memcpy(input.loose_signatures.mutable_data_ptr<int64_t>(), batch.loose_signatures.data(),
                static_cast<size_t>(count) * sizeof(Signature));
    input.loose_signatures = input.loose_signatures.to(device);
  }
  return input;
}

Tensor targets_of(const WindowBatch& batch, c10::Device device) {
  return at::tensor(batch.targets, at::kLong).view({batch.rows, batch.length}).to(device);
}

WindowLosses evaluate_masked(const Encoder& model, const TokenData& tokens, const Masker& masker,
                             const MaskedSetup& setup, const WindowProgress& progress) {
  const EvaluationMode evaluating(model.ptr());
  const at::NoGradGuard no_grad;
  const DisjointWindows windows(tokens, masker, setup.context);
  check_askable(tokens, masker, "text");
  WindowLosses result;
  for (int64_t first = 0; first < windows.windows(); first += setup.batch_size) {
    const int64_t count = std::min(setup.batch_size, windows.windows() - first);
    WindowBatch batch = windows.rows(first, count);
    masker.pad(&batch);
    for (int64_t row = 0; row < count; ++row) {
      Philox random(stream_key(mask_key_of_evaluations(), static_cast<uint64_t>(first + row)));
      masker.mask_row(row, random, &batch);
    }
    const Tensor targets = targets_of(batch, model->device());
    result.add(model->token_losses(to_input(batch, model->device()), targets), targets);
    if (progress) progress(first + count, windows.windows());
  }
  return result;
}

std::optional<LanguageSums> pseudo_likelihood(const Encoder& model, const TokenData& tokens, int64_t most,
                                              const Masker& masker, const MaskedSetup& setup,
                                              const WindowProgress& progress) {
  if (most == 0) return std::nullopt;
  const EvaluationMode evaluating(model.ptr());
  const at::NoGradGuard no_grad;
  const DisjointWindows windows(tokens, masker, setup.context, most);
  LanguageSums sums;
  int64_t seen = 0;
  for (int64_t window = 0; window < windows.windows(); ++window) {
    const WindowBatch whole = windows.rows(window, 1);
    std::vector<int64_t> places;
    for (size_t place = 0; place < whole.ids.size(); ++place) {
      if (masker.ordinary(whole.ids[place])) places.push_back(static_cast<int64_t>(place));
    }
    const std::span<const int64_t> text(whole.ids.data() + 1, whole.ids.size() - 2);
    for (size_t first = 0; first < places.size(); first += static_cast<size_t>(setup.batch_size)) {
      const size_t count = std::min(static_cast<size_t>(setup.batch_size), places.size() - first);
      WindowBatch batch;
      for (size_t row = 0; row < count; ++row) masker.add_row(text, &batch);
      masker.pad(&batch);
      for (size_t row = 0; row < count; ++row) {
        masker.mask_place(static_cast<int64_t>(row), places[first + row], &batch);
      }
      sums.nats += summed(model->token_losses(to_input(batch, model->device()), targets_of(batch, model->device())));
      sums.tokens += batch.scored;
      if (progress) progress(seen + static_cast<int64_t>(first + count), windows.tokens());
    }
    seen += static_cast<int64_t>(text.size());
  }
  return sums.tokens > 0 ? std::optional(sums) : std::nullopt;
}

Score masked_perplexity(const LanguageSums& sums, const std::string& tokenizer, const MaskedSetup& setup,
                        const MaskingOptions& masking) {
  Score score = renamed("masked-perplexity", sums, "masked", tokenizer, setup);
  score.signature += join_text("|rate:", masking.rate, "|whole-words:", masking.whole_words ? "yes" : "no");
  return score;
}

Score pseudo_perplexity(const LanguageSums& sums, const std::string& tokenizer, const MaskedSetup& setup) {
  return renamed("pseudo-perplexity", sums, "pseudo", tokenizer, setup);
}

}  // namespace headshare
