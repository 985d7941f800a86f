// headshare generate: continues text, token by token.
#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "headshare/cli/input_lines.h"
#include "headshare/cli/interrupt.h"
#include "headshare/cli/model_input.h"
#include "headshare/cli/runtime_options.h"
#include "headshare/cli/terminal.h"
#include "headshare/cli/verbs.h"
#include "headshare/decode/generate.h"
#include "headshare/models/size.h"

namespace headshare {
namespace {

struct GenerateOptions {
  std::string model_path;
  std::string prompt;
  int64_t samples = 1;
  bool echo = true;
  bool json = false;
  SamplingOptions sampling;
  RuntimeOptions runtime;
};

Fields own_fields(GenerateOptions& o) {
  return {
      field("prompt", &o.prompt,
            "the text to continue; without it, every line of standard input is a prompt. An empty one starts a new "
            "document"),
      field("samples", &o.samples, "continuations of each prompt",
            {.min = 1, .max = 1 << 20, .aliases = {"num-samples", "num-return-sequences"}}),
      field("echo", &o.echo, "print the prompt before its continuation"),
      field("json", &o.json, "print one JSON object a line for each continuation"),
  };
}

bool has_position_limit(const DecoderOptions& options) {
  return options.positions == PositionKind::kLearned || options.positions == PositionKind::kSinusoidal;
}

std::vector<int32_t> prompt_tokens(const std::string& prompt, const LoadedModel& loaded) {
  std::vector<int32_t> tokens = loaded.tokenizer->encode(prompt);
  if (tokens.empty()) {
    const std::optional<int32_t> start = loaded.tokenizer->special(SpecialToken::kEndOfText);
    HS_CHECK(start.has_value(), "the prompt is empty, and this model's tokenizer (", loaded.tokenizer->kind(),
             ") has no end-of-text token to start a document from; give a --prompt");
    tokens = {*start};
  }
  const DecoderOptions& model = loaded.model->options();
  const auto count = static_cast<int64_t>(tokens.size());
  HS_CHECK(!has_position_limit(model) || count <= model.context, "the prompt has ", count,
           " tokens, more than the model's context of ", model.context, "; shorten it");
  const double widths =
      8.0 * static_cast<double>(model.attention.d_model) + static_cast<double>(*model.feed_forward_width);
  check_memory(4 * static_cast<double>(count) * widths, join_text("a prompt of ", count, " tokens"), "shorten it");
  return tokens;
}

// Feeds the model through its cache; only the last position is turned into logits.
StepFunction make_step(const LoadedModel& loaded, int64_t capacity) {
  auto state = std::make_shared<DecodingState>(loaded.model->new_state(capacity));
  return [state, model = loaded.model, known = loaded.tokenizer->vocabulary_size()](std::span<const int32_t> fresh) {
    const std::vector<int64_t> ids(fresh.begin(), fresh.end());
    const Tensor input = at::tensor(ids, at::kLong).unsqueeze(0).to(model->device());  // [1, T]
    const Tensor hidden = model->hidden(input, state.get());                           // [1, T, E]
    const Tensor logits = model->logits(hidden.select(1, -1)).to(at::kCPU, at::kFloat).contiguous();
    const float* first = logits.const_data_ptr<float>();
    std::vector<float> values(first, first + logits.numel());
    // Ids the model has room for and the tokenizer no text.
    std::fill(values.begin() + known, values.end(), -std::numeric_limits<float>::infinity());
    return values;
  };
}

const char* reason_text(StopReason reason, bool at_limit) {
  if (reason == StopReason::kEndOfText) return "end_of_text";
  if (reason == StopReason::kStopString) return "stop_string";
  return at_limit ? "context_limit" : "max_new_tokens";
}

void print_object(const std::string& prompt, const Generated& made, const char* reason, double seconds) {
  const nlohmann::ordered_json object = {
      {"prompt", prompt}, {"text", made.text}, {"tokens", made.tokens}, {"stop_reason", reason}, {"seconds", seconds}};
  print_json(object.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  flush_output();
}

void continue_prompt(const GenerateOptions& options, const LoadedModel& loaded, const std::string& prompt,
                     uint64_t sequence) {
  const c10::InferenceMode inference;
  const DecoderOptions& model = loaded.model->options();
  GenerateRequest request{.prompt = prompt_tokens(prompt, loaded), .sampling = options.sampling};
  const auto prompt_length = static_cast<int64_t>(request.prompt.size());
  // The last token is not fed back, so that one more than the context is possible.
  const int64_t room = model.context - prompt_length + 1;
  const bool limited = has_position_limit(model) && room < options.sampling.max_new_tokens;
  if (limited) request.sampling.max_new_tokens = room;
  const int64_t capacity = prompt_length + request.sampling.max_new_tokens;
  check_memory(decoding_bytes(model, 1, capacity) - decoding_bytes(model, 1, 0), "the cache",
               "use a smaller --max-new-tokens");
  request.end_of_text = loaded.tokenizer->special(SpecialToken::kEndOfText);
  request.decode = [&](std::span<const int32_t> ids) { return loaded.tokenizer->decode(ids); };
  request.sequence = sequence;
  request.on_token = [&](std::optional<int32_t>, std::string_view text) {
    check_interrupted();
    if (options.json) return;
    print_text(text);
    flush_output();
  };
  if (!options.json && options.echo) print_text(prompt);
  const auto started = std::chrono::steady_clock::now();
  const Generated made = generate(make_step(loaded, capacity), request);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - started;
  const bool at_limit = limited && made.reason == StopReason::kMaxNewTokens;
  if (options.json) {
    print_object(prompt, made, reason_text(made.reason, at_limit), passed.count());
  } else {
    print("\n");
    flush_output();
  }
  if (at_limit) {
    print_note(join_text("stopped after ", made.tokens.size(), " tokens: the model's context of ", model.context,
                         " is full (its positions end there)"));
  }
}

}  // namespace

int run_generate(const Words& words) {
  GenerateOptions options;
  Arguments arguments("generate",
                      "Continues text. The prompt and its continuation go to standard output as they come.");
  arguments.required("MODEL", "a checkpoint or run directory", &options.model_path);
  arguments.group("Text", own_fields(options));
  arguments.group("Sampling", fields(options.sampling));
  arguments.group("Computing", fields(options.runtime));
  arguments.note(
      "With learned or sinusoidal positions the text ends where the model's context does, with a note. Several "
      "continuations are separated by a line of three dashes. The same seed gives the same text.");
  if (!arguments.parse(words)) return kOk;
  catch_interrupts();
  const LoadedModel loaded = load_model_on(options.model_path, start_runtime(options.runtime));
  uint64_t sequence = 0;
  const auto answer = [&](const std::string& prompt) {
    for (int64_t i = 0; i < options.samples; ++i) {
      if (sequence > 0 && !options.json) print("---\n");
      continue_prompt(options, loaded, prompt, sequence++);
    }
  };
  if (arguments.given("prompt")) {
    answer(options.prompt);
    return kOk;
  }
  InputLines lines;
  for (std::string line; lines.next(&line);) {
    if (!line.empty()) answer(line);
  }
  HS_CHECK(sequence > 0, "there is no prompt: give --prompt TEXT, or prompts on standard input, a line each");
  return kOk;
}

}  // namespace headshare
