// For tests/oracles/ only: what a model makes of token ids.
//   decoder_tool MODEL IDS OUT [gradients]
// MODEL: a checkpoint directory; a tokenizer is not needed. IDS: a JSON file [[..], ..] of rows of equal
// length. OUT: safetensors with `logits` [B, T, V], `loss` (mean over the next tokens) and, when asked,
// the loss's gradient by every parameter as `gradient.NAME`.
#include <ATen/ATen.h>

#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <vector>

#include "headshare/base/error.h"
#include "headshare/models/checkpoint.h"

namespace {

using namespace headshare;

Tensor read_ids(const fs::path& path) {
  const auto rows = nlohmann::json::parse(read_file(path)).get<std::vector<std::vector<int64_t>>>();
  std::vector<Tensor> tensors;
  for (const auto& row : rows) tensors.push_back(at::tensor(row, at::kLong));
  return at::stack(tensors);
}

NamedTensors results(Decoder& model, const Tensor& ids, bool gradients) {
  NamedTensors out;
  const int64_t last = ids.size(1) - 1;
  out["logits"] = model->logits(model->hidden(ids));
  const SummedLoss loss = model->loss(ids.narrow(1, 0, last), ids.narrow(1, 1, last).contiguous());
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
    std::fprintf(stderr, "usage: decoder_tool MODEL IDS OUT [gradients]\n");
    return 2;
  }
  try {
    Decoder model = load_decoder(find_checkpoint(arguments[1]));
    const at::AutoGradMode mode(gradients);
    write_tensors(arguments[3], results(model, read_ids(arguments[2]), gradients));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
