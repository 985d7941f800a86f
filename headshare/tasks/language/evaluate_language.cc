#include "headshare/tasks/language/evaluate_language.h"

#include <ATen/ATen.h>

#include "headshare/tasks/evaluation_mode.h"

namespace headshare {

Tensor to_tensor(const std::vector<int64_t>& values, const Batch& batch, c10::Device device) {
  return at::tensor(values, at::kLong).view({batch.rows, batch.length}).to(device);
}

void WindowLosses::add(const Tensor& losses, const Tensor& targets) {
  const Tensor window_sums = losses.sum(1, /*keepdim=*/false, at::kDouble).cpu();  // [B]
  const Tensor counts = (targets != kIgnoredTarget).sum(1).cpu();                  // [B]
  for (int64_t row = 0; row < losses.size(0); ++row) {
    const double sum = window_sums[row].item<double>();
    const int64_t count = counts[row].item<int64_t>();
    sums.nats += sum;
    sums.tokens += count;
    if (count == 0) continue;
    window_means.push_back(sum / static_cast<double>(count));
    window_targets.push_back(count);
  }
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
    result.add(model->token_losses(to_tensor(batch.inputs, batch, model->device()), targets), targets);
    if (progress) progress(std::min((i + 1) * options.batch_size, windows.windows()), windows.windows());
  }
  return result;
}

LanguageSums evaluate_language(const Decoder& model, const TokenData& tokens, const Tokenizer& tokenizer,
                               const WindowOptions& options, const WindowProgress& progress) {
  return evaluate_windows(model, tokens, tokenizer, options, progress).sums;
}

}  // namespace headshare
