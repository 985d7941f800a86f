// For tests/oracles/ only: what an encoder makes of token ids.
//   encoder_tool MODEL INPUT OUT [gradients]
// MODEL: a checkpoint directory; a tokenizer is not needed. INPUT: a JSON object of rows of equal length: "ids" and,
// where wanted, "visible" (1, or 0 for padding), "segments" and "targets" (-100: none). OUT: safetensors with `hidden`
// [B, T, E], with a pooler `pooled` [B, E], with a masked-LM head `logits` [B, T, V], with targets their `loss` (mean)
// and, when asked, its gradient by every parameter as `gradient.NAME`.
#include <ATen/ATen.h>

#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <vector>

#include "headshare/base/error.h"
#include "headshare/models/checkpoint.h"

namespace {

using namespace headshare;

// Undefined where the object has no such rows.
Tensor read_rows(const nlohmann::json& object, const char* key) {
  if (!object.contains(key)) return {};
  std::vector<Tensor> tensors;
  for (const auto& row : object.at(key).get<std::vector<std::vector<int64_t>>>()) {
    tensors.push_back(at::tensor(row, at::kLong));
  }
  return at::stack(tensors);
}

NamedTensors results(Encoder& model, const nlohmann::json& object, bool gradients) {
  EncoderInput input{.ids = read_rows(object, "ids"), .segments = read_rows(object, "segments")};
  if (object.contains("visible")) input.visible = read_rows(object, "visible").to(at::kBool);
  NamedTensors out;
  out["hidden"] = model->hidden(input);
  if (model->options().pooler) out["pooled"] = model->pooled(out["hidden"]);
  if (model->options().masked_head) out["logits"] = model->logits(out["hidden"]);
  if (!object.contains("targets")) return out;
  const SummedLoss loss = model->loss(input, read_rows(object, "targets"));
  out["loss"] = loss.sum / loss.tokens;
  if (!gradients) return out;
  out["loss"].backward();
  for (const Declared& one : declared_parameters(*model)) {
    const Tensor gradient = one.tensor.grad();
    out["gradient." + one.name] = gradient.defined() ? gradient : at::zeros_like(one.tensor);
  }
  return out;
}

}  // namespace

int main(int count, char** arguments) {
  const bool gradients = count == 5 && std::string(arguments[4]) == "gradients";
  if (count != 4 && !gradients) {
    std::fprintf(stderr, "usage: encoder_tool MODEL INPUT OUT [gradients]\n");
    return 2;
  }
  try {
    Encoder model = load_encoder(find_checkpoint(arguments[1]));
    const at::AutoGradMode mode(gradients);
    write_tensors(arguments[3], results(model, nlohmann::json::parse(read_file(arguments[2])), gradients));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
