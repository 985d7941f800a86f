// These functions score a masked language model on a text.
#pragma once

#include "headshare/models/encoder.h"
#include "headshare/tasks/language/evaluate_language.h"
#include "headshare/tasks/masked/masking.h"

namespace headshare {

struct MaskedSetup {
  int64_t context = 128;
  int64_t batch_size = 32;  // windows at once
};

// Converts a padded batch to tensors on `device`.
EncoderInput to_input(const WindowBatch& batch, c10::Device device);
Tensor targets_of(const WindowBatch& batch, c10::Device device);  // int64 [B, T]

// Returns the loss at masked tokens of every window of `tokens`. The masks follow from the windows' numbers and the
// masking options alone, so that every model is asked the same; the model is put into evaluation mode meanwhile. Throws
// Error when no token could be masked.
WindowLosses evaluate_masked(const Encoder& model, const TokenData& tokens, const Masker& masker,
                             const MaskedSetup& setup, const WindowProgress& progress = {});

// Masks every ordinary one of the first `most` tokens by itself, in its window, and returns the sum of -ln p(token |
// all others), whose exponential per token is the pseudo-perplexity (Salazar et al., 2020). It takes a forward pass of
// a window for each token. Nothing when there are no tokens to mask, or `most` is 0.
std::optional<LanguageSums> pseudo_likelihood(const Encoder& model, const TokenData& tokens, int64_t most,
                                              const Masker& masker, const MaskedSetup& setup,
                                              const WindowProgress& progress = {});

// Return the scores "masked-perplexity", exp of the loss at masked tokens, and "pseudo-perplexity". `tokenizer` names
// the tokenizer in the signature.
Score masked_perplexity(const LanguageSums& sums, const std::string& tokenizer, const MaskedSetup& setup,
                        const MaskingOptions& masking);
Score pseudo_perplexity(const LanguageSums& sums, const std::string& tokenizer, const MaskedSetup& setup);

}  // namespace headshare
