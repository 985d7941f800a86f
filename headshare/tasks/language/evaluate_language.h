// These functions score a language model on a text.
#pragma once

#include <functional>

#include "headshare/data/text/windows.h"
#include "headshare/metrics/language.h"
#include "headshare/models/decoder.h"
#include "headshare/text/interface/tokenizer.h"

namespace headshare {

// WindowProgress is called after each batch with the windows done and in all. It may throw (Interrupted) to stop.
using WindowProgress = std::function<void(int64_t done, int64_t total)>;

// Sums the loss of `model` over `tokens`, every token but the first scored once (data/windows.h). The bytes are those
// of the scored tokens. The model is put into evaluation mode meanwhile. Sums are formed in double.
LanguageSums evaluate_language(const Decoder& model, const TokenData& tokens, const Tokenizer& tokenizer,
                               const WindowOptions& options, const WindowProgress& progress = {});

// WindowLosses has the loss of each window, [windows], mean nats per scored token: blocks for a bootstrap.
struct WindowLosses {
  LanguageSums sums;
  std::vector<double> window_means;
  std::vector<int64_t> window_targets;  // scored tokens of each window

  // Adds windows with the losses [B, T] of targets int64 [B, T]. A window without targets has no mean.
  void add(const Tensor& losses, const Tensor& targets);
};
WindowLosses evaluate_windows(const Decoder& model, const TokenData& tokens, const Tokenizer& tokenizer,
                              const WindowOptions& options, const WindowProgress& progress = {});

// Converts a batch to tensors int64 [B, T] on `device`.
Tensor to_tensor(const std::vector<int64_t>& values, const Batch& batch, c10::Device device);

}  // namespace headshare
