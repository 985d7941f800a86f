// Decoders of Llama's form as Hugging Face transformers configures and stores them: RMS norms before each part, rotary
// positions, a gated feed-forward part, keys and values in groups. Each family is a file that says how it differs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headshare/convert/hf/model_type.h"

namespace headshare {

enum class LlamaBiases {
  kNone,
  kAsked,   // attention_bias gives all four projections biases
  kInputs,  // queries, keys and values have biases, the output has none
};

// A window is the number of tokens, the newest ones, that a layer attends to.
enum class LlamaWindow {
  kNone,
  kEveryLayer,  // sliding_window, unless it is null
  kAsked,       // use_sliding_window switches it on, in the layers that layer_types or max_window_layers say
};

// A family's classes have names, defaults of their configuration, and parts.
struct LlamaFamily {
  std::string type, name;  // "qwen3" of model_type, "Qwen3" of Qwen3ForCausalLM
  // The numbers down to `tied` are defaults for keys that config.json lacks.
  int64_t vocabulary, feed_forward_width, context;
  int64_t layers = 32, d_model = 4096, heads = 32;
  std::optional<int64_t> head_width = {};           // nothing: d_model / heads
  std::optional<int64_t> groups = {};               // num_key_value_heads; nothing: one for each head
  FeedForwardKind gate = FeedForwardKind::kSwiglu;  // hidden_act
  bool tied = false;                                // tie_word_embeddings
  LlamaBiases biases = LlamaBiases::kNone;          // of attention
  bool may_have_mlp_bias = false;                   // mlp_bias counts
  bool qk_norm = false;                             // RMS norms over each query and key, with rms_norm_eps
  LlamaWindow window = LlamaWindow::kNone;
  bool is_gemma = false;  // norms multiply by 1 + weight, embeddings are scaled by sqrt(d_model), gelu is its tanh form
};

// The shape of a configuration of the family.
HfShape llama_form_shape(const HfConfig& config, const LlamaFamily& family);

// Maps the tensors of a directory. Throws Error, naming the key, for what would make other outputs.
ForeignModel open_llama_form(const std::shared_ptr<const HfDirectory>& directory, const LlamaFamily& family);

// The files of a model of the form, whose norms of queries and keys are the family's. Biases that the family has and
// the model lacks are zeros. Throws Error where one that the family lacks is not zero.
HfContent llama_form_content(const ModelToWrite& model, const LlamaFamily& family);
template <const LlamaFamily& (*family)()>
HfContent llama_form_content(const ModelToWrite& model) {
  return llama_form_content(model, family());
}

// The row of a family whose models come in.
template <const LlamaFamily& (*family)()>
HfModelType llama_form_type() {
  return {
      .name = family().type,
      .models = {family().name},
      .kind = "decoder",
      .shape = [](const HfConfig& config, const std::string&) { return llama_form_shape(config, family()); },
      .open = [](const std::shared_ptr<const HfDirectory>& directory) { return open_llama_form(directory, family()); }};
}

// A LlamaFormPlace says what a format has a place for besides.
struct LlamaFormPlace {
  std::string name;      // leads the sentences
  bool qk_norm = false;  // norms over queries and keys
  bool scaling = false;  // rotations that are scaled
  bool feed_forward_bias = true;
  bool projection_bias = true;
  bool windows = false;        // local windows, all with one rotary base
  bool global_layers = false;  // layers without a window beside them
};

// The sentences say what keeps a decoder out of this form, which is also that of other programs' formats.
std::vector<std::string> llama_form_objections(const DecoderOptions& resolved, const LlamaFormPlace& place);

// The number of key heads and of value heads of a layer of scheme mha, gqa or mqa.
int64_t key_value_heads(const AttentionOptions& resolved);

// The functions above read a configuration in this way.
struct LlamaReading {
  DecoderOptions options;                  // resolved
  std::optional<int64_t> bound = {};       // the longest text for which full attention equals windows that ours has not
  std::vector<std::string> notes = {};     // sentences: what a count of costs leaves out
  std::vector<std::string> refusals = {};  // sentences: what keeps tensors from giving the same outputs
};
const std::vector<HfKey>& llama_keys();
LlamaReading read_llama_form(const HfConfig& config, const LlamaFamily& family);

}  // namespace headshare
