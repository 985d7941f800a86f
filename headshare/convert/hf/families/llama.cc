#include "headshare/convert/hf/families/llama_form.h"
#include "headshare/convert/hf/llama_families.h"

namespace headshare {
namespace {

const LlamaFamily& llama_family() {
  static const LlamaFamily family = {.type = "llama",
                                     .name = "Llama",
                                     .vocabulary = 32000,
                                     .feed_forward_width = 11008,
                                     .context = 2048,
                                     .biases = LlamaBiases::kAsked,
                                     .may_have_mlp_bias = true};
  return family;
}

std::vector<std::string> llama_objections(const ModelOptions& options) {
  return llama_form_objections(options.as<DecoderOptions>(), {.name = "Llama", .scaling = true});
}

}  // namespace

HfModelType llama_type() {
  HfModelType type = llama_form_type<llama_family>();
  type.objections = llama_objections;
  type.content = llama_form_content<llama_family>;
  return type;
}

}  // namespace headshare
