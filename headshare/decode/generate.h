// The decoding loop works on a step function instead of a model class.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/decode/sampling.h"
#include "headshare/decode/text_stream.h"

namespace headshare {

// Feeds new tokens to the model behind those it has seen, and returns the logits [V] of the last position. It is called
// first with the whole prompt, then with one token at a time.
using StepFunction = std::function<std::vector<float>(std::span<const int32_t> new_tokens)>;

// generate() calls this once per token, in order, with the text that became certain by it ("" while a code point or a
// possible stop string is unfinished). Text still waiting at the end comes in a last call without a token. The texts
// joined are Generated::text. What it throws (Interrupted) ends the generation.
using StreamCallback = std::function<void(std::optional<int32_t> token, std::string_view text)>;

enum class StopReason { kEndOfText, kStopString, kMaxNewTokens };

struct GenerateRequest {
  std::vector<int32_t> prompt = {};  // at least one token
  SamplingOptions sampling = {};
  std::optional<int32_t> end_of_text = {};  // ends the generation when drawn
  DecodeFunction decode = {};               // empty: no text, and no stop strings
  StreamCallback on_token = {};             // may be empty
  uint64_t sequence = 0;                    // which sequence of a batch this is: Sampler's `sequence`
};

struct Generated {
  std::vector<int32_t> tokens;  // without the prompt and without end_of_text; with the tokens of a stop string
  std::string text;             // without the stop string and what came behind it in the same token
  StopReason reason = StopReason::kMaxNewTokens;
};

// Draws tokens until end_of_text, a stop string, or sampling.max_new_tokens of them. The last token is
// not fed back. Throws Error for an empty prompt, for stop strings without `decode`, and what
// next_candidates throws.
Generated generate(const StepFunction& step, const GenerateRequest& request);

}  // namespace headshare
