// For tests/oracles: reads directories of Hugging Face's models. Each line on standard input is a JSON object:
// "directory", "ids" (rows of equal length), of encoders "visible" (false for padding), and "out", the safetensors file
// for their `logits` [B, T, V], or `hidden` [B, T, E] of an encoder without a masked-LM head. Vision transformers have
// "pixels" in place of ids, a safetensors file with `pixels` [B, C, S, S], and with "export" they are written there.
// Prints for each line {"options", "notes", "mapping"} or {"error"}.
#include <ATen/ATen.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "headshare/base/error.h"
#include "headshare/convert/formats.h"
#include "headshare/models/decoder.h"
#include "headshare/models/encoder.h"

namespace headshare {
namespace {

Tensor rows_of(const nlohmann::json& line, const char* key) {
  std::vector<Tensor> rows;
  for (const auto& row : line.at(key).get<std::vector<std::vector<int64_t>>>()) rows.push_back(at::tensor(row));
  return at::stack(rows);
}

NamedTensors outputs_for_pixels(const VisionTransformer& model, const nlohmann::json& line) {
  const Tensor pixels = read_tensors(line.at("pixels").get<std::string>()).at("pixels");
  if (line.contains("export")) {
    const fs::path directory = line.at("export").get<std::string>();
    make_directories(directory);
    find_written_format("hf")->write({.options = model->options(), .tensors = model_tensors(*model)}, "", directory);
  }
  if (model->options().classes == 0) return {{"hidden", model->hidden(pixels)}};
  return {{"logits", model->scores(pixels)}};
}

NamedTensors outputs(const ForeignModel& foreign, const nlohmann::json& line) {
  if (line.contains("pixels")) return outputs_for_pixels(read_model(foreign).as<VisionTransformer>(), line);
  const Tensor ids = rows_of(line, "ids");
  if (foreign.options.find<DecoderOptions>() != nullptr) {
    const auto model = read_model(foreign).as<Decoder>();
    return {{"logits", model->logits(model->hidden(ids))}};
  }
  const auto model = read_model(foreign).as<Encoder>();
  const Tensor hidden = model->hidden({.ids = ids, .visible = rows_of(line, "visible").to(at::kBool)});
  if (!model->options().masked_head) return {{"hidden", hidden}};
  return {{"logits", model->logits(hidden)}};
}

nlohmann::json imported(const nlohmann::json& line) {
  try {
    const ForeignModel foreign = find_format("hf").open(fs::path(line.at("directory").get<std::string>()));
    const at::NoGradGuard no_grad;
    write_tensors(line.at("out").get<std::string>(), outputs(foreign, line));
    nlohmann::json mapping;
    for (const MappedTensor& one : foreign.tensors) mapping[one.target] = one.source;
    return {{"options", stored_option_values(foreign.options)}, {"notes", foreign.notes}, {"mapping", mapping}};
  } catch (const Error& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace
}  // namespace headshare

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << headshare::imported(nlohmann::json::parse(line)).dump() << std::endl;
  }
}
