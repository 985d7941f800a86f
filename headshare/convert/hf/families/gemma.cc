#include "headshare/convert/hf/families/llama_form.h"
#include "headshare/convert/hf/llama_families.h"

namespace headshare {
namespace {

const LlamaFamily& gemma_family() {
  static const LlamaFamily family = {.type = "gemma",
                                     .name = "Gemma",
                                     .vocabulary = 256000,
                                     .feed_forward_width = 24576,
                                     .context = 8192,
                                     .layers = 28,
                                     .d_model = 3072,
                                     .heads = 16,
                                     .head_width = 256,
                                     .groups = 16,
                                     .gate = FeedForwardKind::kGeglu,
                                     .tied = true,
                                     .biases = LlamaBiases::kAsked,
                                     .is_gemma = true};
  return family;
}

}  // namespace

HfModelType gemma_type() { return llama_form_type<gemma_family>(); }

}  // namespace headshare
