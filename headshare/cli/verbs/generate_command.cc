// headshare generate continues text, token by token.
#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "headshare/base/json/json_text.h"
#include "headshare/base/memory.h"
#include "headshare/cli/inputs/input_lines.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/decode/generate.h"
#include "headshare/decode/sliding_window.h"
#include "headshare/host/model_input.h"
#include "headshare/host/runtime_options.h"
#include "headshare/models/position_limit.h"
#include "headshare/models/size.h"
#include "headshare/text/text_borders.h"

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
            "the text to continue; without it, every line of standard input is a prompt. An empty prompt starts a new "
            "document"),
      field("samples", &o.samples, "continuations of each prompt",
            {.min = 1, .max = 1 << 20, .aliases = {"num-samples", "num-return-sequences"}}),
      field("echo", &o.echo, "print the prompt before its continuation"),
      field("json", &o.json, "print one JSON object a line for each continuation"),
  };
}

std::vector<int32_t> prompt_tokens(const std::string& prompt, const LoadedModel& loaded) {
  std::vector<int32_t> tokens = loaded.tokenizer->encode(prompt);
  if (const auto begin = begins_texts(*loaded.tokenizer)) tokens.insert(tokens.begin(), *begin);
  if (!tokens.empty()) return tokens;
  const std::optional<int32_t> start = loaded.tokenizer->special(SpecialToken::kEndOfText);
  HS_CHECK(start.has_value(), "the prompt is empty, and this model's tokenizer (", loaded.tokenizer->kind(),
           ") has no end-of-text token to start a document from; give a prompt with text");
  return {*start};
}

// This is how much of a text the model sees, and what that takes.
struct Room {
  bool slides = false;   // the window slides: positions end
  int64_t capacity = 0;  // tokens that a cache must hold
  int64_t prompt = 0;    // tokens of the prompt that the model reads
};

// Throws Error where that does not fit into memory.
Room make_room(const DecoderOptions& model, int64_t prompt, int64_t new_tokens) {
  Room room{.slides = has_position_limit(model.positions), .capacity = prompt + new_tokens, .prompt = prompt};
  if (room.slides) {
    room.capacity = std::min(room.capacity, model.context);
    room.prompt = std::min(room.prompt, model.context);
  }
  const double widths =
      8.0 * static_cast<double>(model.attention.d_model) + static_cast<double>(*model.feed_forward_width);
  check_memory(4 * static_cast<double>(room.prompt) * widths, join_text("a prompt of ", room.prompt, " tokens"),
               "shorten it");
  check_memory(decoding_bytes(model, 1, room.capacity) - decoding_bytes(model, 1, 0), "the cache",
               "use a smaller --max-new-tokens");
  return room;
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
    // The model may have room for ids that the tokenizer has no text for.
    std::fill(values.begin() + known, values.end(), -std::numeric_limits<float>::infinity());
    return values;
  };
}

const char* reason_text(StopReason reason) {
  if (reason == StopReason::kEndOfText) return "end_of_text";
  if (reason == StopReason::kStopString) return "stop_string";
  return "max_new_tokens";
}

void print_object(const std::string& prompt, const Generated& made, double seconds) {
  const nlohmann::ordered_json object = {{"prompt", prompt},
                                         {"text", made.text},
                                         {"tokens", made.tokens},
                                         {"stop_reason", reason_text(made.reason)},
                                         {"seconds", seconds}};
  print_json(json_text(object) + "\n");
  flush_output();
}

// Prints this note once, behind the first continuation that it is about.
void note_sliding(const DecoderOptions& model, int64_t slides) {
  static bool said = false;
  if (slides == 0 || said) return;
  said = true;
  print_note(join_text("the text is longer than the context of ", model.context,
                       " tokens; whenever the context was full, generation continued from its last half"));
}

GenerateRequest make_request(const GenerateOptions& options, const LoadedModel& loaded, const std::string& prompt,
                             uint64_t sequence) {
  GenerateRequest request{.prompt = prompt_tokens(prompt, loaded), .sampling = options.sampling};
  request.end_of_text = loaded.tokenizer->special(SpecialToken::kEndOfText);
  request.decode = [&](std::span<const int32_t> ids) { return loaded.tokenizer->decode(ids); };
  request.sequence = sequence;
  request.on_token = [&](std::optional<int32_t>, std::string_view text) {
    check_interrupted();
    if (options.json) return;
    print_text(text);
    flush_output();
  };
  return request;
}

void continue_prompt(const GenerateOptions& options, const LoadedModel& loaded, const std::string& prompt,
                     uint64_t sequence) {
  const c10::InferenceMode inference;
  const DecoderOptions& model = loaded.model->options();
  const GenerateRequest request = make_request(options, loaded, prompt, sequence);
  const auto length = static_cast<int64_t>(request.prompt.size());
  const Room room = make_room(model, length, options.sampling.max_new_tokens);
  if (room.prompt < length) {
    print_note(join_text("the prompt has ", length, " tokens and the model's context holds ", model.context,
                         ": the model reads the last ", room.prompt, " of them"));
  }
  if (!options.json && options.echo) print_text(prompt);
  const auto begin = [&] { return make_step(loaded, room.capacity); };
  SlidingWindow window(begin, room.slides ? model.context : std::numeric_limits<int64_t>::max());
  const auto started = std::chrono::steady_clock::now();
  const Generated made = generate(std::ref(window), request);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - started;
  if (options.json) {
    print_object(prompt, made, passed.count());
  } else {
    print("\n");
    flush_output();
  }
  note_sliding(model, window.slides());
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
  arguments.common({"prompt", "max-new-tokens", "temperature", "top-k", "top-p", "samples", "seed", "json"});
  arguments.example("generate run --prompt \"Once upon a time\"", "one continuation");
  arguments.example("generate run --samples 3 --temperature 0.8 <prompts.txt", "three of every line");
  arguments.note(
      "Learned and sinusoidal positions end with the model's context. When it is full, the model goes on from its last "
      "half, with a note; a longer prompt is read from its last part. Rotary, ALiBi and no positions have no end: the "
      "model sees the whole text, though beyond its context it was not trained for that. Several "
      "continuations are separated by a line of three dashes. The same seed gives the same text.");
  if (!arguments.parse(words)) return kOk;
  if (options.json) arguments.refuse_idle({"echo"}, "does nothing with --json, which has prompt and text apart");
  if (options.sampling.greedy || options.sampling.temperature == 0) {
    if (options.sampling.greedy)
      arguments.refuse_idle({"temperature"}, "is about drawing tokens, and --greedy draws none");
    arguments.refuse_idle({"top-k", "top-p", "min-p", "seed"}, "is about drawing tokens, and greedy search draws none");
  }
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
  for (std::string line; lines.next(&line);) answer(line);
  HS_CHECK(sequence > 0, "there is no prompt: give --prompt TEXT, or prompts on standard input, a line each");
  return kOk;
}

}  // namespace headshare
