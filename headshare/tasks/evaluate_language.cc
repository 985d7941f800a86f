#include "headshare/tasks/evaluate_language.h"

#include <ATen/ATen.h>

#include "headshare/tasks/evaluation_mode.h"

namespace headshare {
Tensor to_tensor(const std::vector<int64_t>& values, const Batch& batch, c10::Device device) {
  return at::tensor(values, at::kLong).view({batch.rows, batch.length}).to(device);
}

WindowLosses evaluate_windows(const Decoder& model, const TokenData& tokens, const Tokenizer& tokenizer,
                              const WindowOptions& options, const WindowProgress& progress) {
  const EvaluationMode evaluating(model.ptr());
  const at::NoGradGuard no_grad;
  const EvaluationWindows windows(tokens, options);
  WindowLosses result;
  result.sums.bytes = static_cast<int64_t>(tokens.view(1, tokens.size(), tokenizer).text_bytes());
  for (int64_t i = 0; i < windows.batches(); ++i) {
    const Batch batch = windows.batch(i);
    const Tensor targets = to_tensor(batch.targets, batch, model->device());
    const Tensor losses = model->token_losses(to_tensor(batch.inputs, batch, model->device()), targets);
    const Tensor sums = losses.sum(1, /*keepdim=*/false, at::kDouble).cpu();         // [B]
    const Tensor counts = (targets != kIgnoredTarget).sum(1).to(at::kDouble).cpu();  // [B]
    for (int64_t row = 0; row < batch.rows; ++row) {
      const double sum = sums[row].item<double>();
      result.sums.nats += sum;
      result.window_means.push_back(sum / counts[row].item<double>());
    }
    result.sums.tokens += batch.scored;
    if (progress) progress(std::min((i + 1) * options.batch_size, windows.windows()), windows.windows());
  }
  return result;
}

LanguageSums evaluate_language(const Decoder& model, const TokenData& tokens, const Tokenizer& tokenizer,
                               const WindowOptions& options, const WindowProgress& progress) {
  return evaluate_windows(model, tokens, tokenizer, options, progress).sums;
}

}  // namespace headshare
