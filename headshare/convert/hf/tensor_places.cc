#include "headshare/convert/hf/tensor_places.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"

namespace headshare {
namespace {

using Shape = std::vector<int64_t>;

// The shape of each of our tensors, those of blocks by the first block's names: however many layers an untrusted
// configuration asks for, one is made.
std::map<std::string, Shape> shapes_of_one_block(ModelOptions options) {
  const DeclareOn meta(at::kMeta);
  options.common().layers = 1;
  options.common().layer_groups.reset();
  if (auto* both = options.find<EncoderDecoderOptions>()) both->decoder_layers = 1;
  std::map<std::string, Shape> shapes;
  for (const auto& [name, tensor] : model_tensors(*options.kind().make(options)))
    shapes.emplace(name, tensor.sizes().vec());
  return shapes;
}

std::string in_first_block(const std::string& ours) {
  for (const std::string blocks : {"blocks.", "encoder.", "decoder."}) {
    if (ours.starts_with(blocks)) return blocks + "0" + ours.substr(ours.find('.', blocks.size()));
  }
  return ours;
}

Shape their_shape(const TensorPlace& place, Shape shape) {
  if (place.transposed) std::swap(shape.at(0), shape.at(1));
  shape.back() *= place.parts;
  shape.front() += place.unused_rows;
  if (place.one_row) shape.insert(shape.begin(), 1);
  return shape;
}

// "columns 0..767, transposed".
std::string taken_text(const TensorPlace& place, const Shape& theirs) {
  std::vector<std::string> steps;
  const int64_t width = theirs.back() / place.parts;
  const int64_t first = place.part * width;
  if (place.parts > 1) steps.push_back(join_text("columns ", first, "..", first + width - 1));
  if (place.transposed) steps.emplace_back("transposed");
  if (place.factor != 1) steps.push_back(join_text("times ", place.factor));
  if (place.unused_rows > 0) steps.push_back(join_text("without the first ", place.unused_rows, " rows"));
  if (place.one_row) steps.emplace_back("its only row");
  std::string text;
  for (const std::string& step : steps) text += (text.empty() ? "" : ", ") + step;
  return text;
}

Tensor taken_from(const TensorPlace& place, Tensor values) {
  if (place.parts > 1) {
    const int64_t width = values.size(-1) / place.parts;
    values = values.narrow(-1, place.part * width, width);
  }
  if (place.transposed) values = values.t();
  if (place.factor != 1) values = values * place.factor;
  if (place.unused_rows > 0) values = values.slice(0, place.unused_rows);
  return place.one_row ? values.flatten() : values;
}

// Inverts taken_from() for one tensor, without the tensors that stand beside it.
Tensor put_back(const TensorPlace& place, Tensor values) {
  if (place.one_row) values = values.unsqueeze(0);
  if (place.unused_rows > 0) values = at::cat({values.new_zeros({place.unused_rows, values.size(1)}), values});
  if (place.factor != 1) values = values / place.factor;
  return place.transposed ? values.t() : values;
}

std::string place_name(const std::string& plain, const std::string& prefix, const std::vector<std::string>& heads) {
  const bool in_head =
      std::any_of(heads.begin(), heads.end(), [&](const std::string& head) { return plain.starts_with(head); });
  return in_head ? plain : prefix + plain;
}

// Advises on a missing tensor. In place of an embedding, the output layer may be meant to serve as both.
std::string advice_on(const TensorPlace& place, const TensorPlaces& places, const HfMapping& mapping) {
  const auto is_output = [](const TensorPlace& one) { return one.ours.ends_with("output_embedding"); };
  if (is_output(place)) return kUntiedAdvice;
  if (!place.ours.ends_with("token_embedding") && place.ours != "source_embedding") return "";
  const auto output = std::find_if(places.begin(), places.end(), is_output);
  return output == places.end() ? "" : mapping.tied_advice(output->theirs);
}

}  // namespace

void add_pair(const std::string& theirs, const std::string& ours, TensorPlaces* places) {
  for (const char* part : {".weight", ".bias"}) places->push_back({.theirs = theirs + part, .ours = ours + part});
}

void add_blocks(const std::string& prefix, const BlockParts& parts, int64_t layers, TensorPlaces* places,
                const std::string& our_prefix) {
  for (int64_t layer = 0; layer < layers; ++layer) {
    for (const auto& [theirs, ours] : parts) {
      add_pair(join_text(prefix, layer, ".", theirs), join_text(our_prefix, layer, ".", ours), places);
    }
  }
}

std::map<std::string, std::string> take_places(const TensorPlaces& places, const ModelOptions& options,
                                               HfMapping* mapping) {
  const std::map<std::string, Shape> ours = shapes_of_one_block(options);
  std::map<std::string, std::string> full_of;  // by their plain names: one tensor may be cut for several of ours
  std::map<std::string, std::string> taken;
  for (const TensorPlace& place : places) {
    const Shape shape = their_shape(place, ours.at(in_first_block(place.ours)));
    if (!place.copies.empty()) {
      std::vector<std::string> names = {place.theirs};
      names.insert(names.end(), place.copies.begin(), place.copies.end());
      taken.emplace(place.ours, mapping->copy_tied(names, shape, place.ours));
      continue;
    }
    if (!full_of.contains(place.theirs)) {
      full_of.emplace(place.theirs, mapping->take(place.theirs, shape, advice_on(place, places, *mapping)));
    }
    const std::string& full = full_of.at(place.theirs);
    taken.emplace(place.ours, full);
    mapping->add(full, taken_text(place, shape), place.ours,
                 [from = mapping->shared_directory(), full, place] { return taken_from(place, from->read(full)); });
  }
  return taken;
}

NamedTensors fill_places(const TensorPlaces& places, const ModelToWrite& model, const std::string& prefix,
                         const std::vector<std::string>& heads) {
  const at::NoGradGuard no_grad;
  std::map<std::string, std::vector<Tensor>> parts;  // by their full names
  for (const TensorPlace& place : places) {
    check_writable_values(model, place.ours);
    std::vector<Tensor>& beside = parts[place_name(place.theirs, prefix, heads)];
    beside.resize(static_cast<size_t>(place.parts));
    beside.at(static_cast<size_t>(place.part)) = put_back(place, model.tensors.at(place.ours));
  }
  NamedTensors filled;
  for (const auto& [name, beside] : parts) filled.emplace(name, beside.size() == 1 ? beside[0] : at::cat(beside, -1));
  return filled;
}

}  // namespace headshare
