#include "headshare/convert/hf/families/llama_form.h"
#include "headshare/convert/hf/llama_families.h"

namespace headshare {
namespace {

const LlamaFamily& qwen3_family() {
  static const LlamaFamily family = {.type = "qwen3",
                                     .name = "Qwen3",
                                     .vocabulary = 151936,
                                     .feed_forward_width = 22016,
                                     .context = 32768,
                                     .head_width = 128,
                                     .groups = 32,
                                     .biases = LlamaBiases::kAsked,
                                     .qk_norm = true,
                                     .window = LlamaWindow::kAsked};
  return family;
}

std::vector<std::string> qwen3_objections(const ModelOptions& options) {
  const auto& decoder = options.as<DecoderOptions>();
  std::vector<std::string> all = llama_form_objections(decoder, {.name = "Qwen3",
                                                                 .qk_norm = true,
                                                                 .scaling = true,
                                                                 .feed_forward_bias = false,
                                                                 .windows = true,
                                                                 .global_layers = true});
  if (!decoder.attention.qk_norm) {
    all.emplace_back("the decoder norms neither queries nor keys, and Qwen3 does (--qk-norm)");
  }
  if (decoder.norm_epsilon == 0) {
    all.emplace_back(
        "the decoder's --norm-epsilon is 0, which Qwen3 adds to queries and keys, too; headshare adds more there");
  }
  return all;
}

}  // namespace

HfModelType qwen3_type() {
  HfModelType type = llama_form_type<qwen3_family>();
  type.objections = qwen3_objections;
  type.content = llama_form_content<qwen3_family>;
  return type;
}

}  // namespace headshare
