#include "headshare/decode/generate.h"

#include <utility>

#include "headshare/base/error.h"

namespace headshare {
namespace {

// Turns tokens into text as soon as it is certain; without a decode function all texts are "".
class Output {
 public:
  explicit Output(const GenerateRequest& request)
      : decodes_(static_cast<bool>(request.decode)),
        stream_(request.decode, request.prompt),
        stops_(request.sampling.stop),
        on_token_(request.on_token) {}

  void push(int32_t token) {
    result_.tokens.push_back(token);
    emit(token, decodes_ ? stops_.push(stream_.push(token)) : "");
  }

  bool stopped() const { return stops_.found(); }

  Generated finish(StopReason reason) {
    std::string rest = decodes_ && !stopped() ? stops_.push(stream_.finish()) : "";
    // The text that waited may complete a stop string by itself.
    result_.reason = stopped() ? StopReason::kStopString : reason;
    rest += stops_.finish();
    if (!rest.empty()) emit(std::nullopt, rest);
    return std::move(result_);
  }

 private:
  void emit(std::optional<int32_t> token, std::string_view text) {
    result_.text += text;
    if (on_token_) on_token_(token, text);
  }

  bool decodes_;
  TextStream stream_;
  StopMatcher stops_;
  StreamCallback on_token_;
  Generated result_;
};

}  // namespace

Generated generate(const StepFunction& step, const GenerateRequest& request) {
  HS_CHECK(!request.prompt.empty(), "the prompt has no token to start from: give it text, or the end-of-text token");
  HS_CHECK(request.sampling.stop.empty() || request.decode,
           "stop strings need a tokenizer that decodes: ", request.sampling.stop.size(), " given");
  Sampler sampler(request.sampling, request.sequence);
  Output output(request);
  std::vector<int32_t> history = request.prompt;
  size_t seen = 0;  // tokens of history the model has been fed
  for (int64_t i = 0; i < request.sampling.max_new_tokens; ++i) {
    const std::vector<float> logits = step(std::span<const int32_t>(history).subspan(seen));
    seen = history.size();
    const int32_t token = sampler.next(logits, history);
    if (token == request.end_of_text) return output.finish(StopReason::kEndOfText);
    history.push_back(token);
    output.push(token);
    if (output.stopped()) return output.finish(StopReason::kStopString);
  }
  return output.finish(StopReason::kMaxNewTokens);
}

}  // namespace headshare
