#include "headshare/convert/hf/tensor_places.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

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
  if (options.common().norms == NormPlacement::kBeforeExceptFirst) options.common().norms = NormPlacement::kBefore;
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

// The rows of a tensor's slices, by part: one unless they are stacked.
using RowsOfParts = std::map<std::string, std::vector<int64_t>>;  // by their plain names

RowsOfParts rows_of_parts(const TensorPlaces& places, const std::map<std::string, Shape>& ours) {
  RowsOfParts rows;
  for (const TensorPlace& place : places) {
    if (!place.stacked) continue;
    std::vector<int64_t>& parts = rows[place.theirs];
    parts.resize(static_cast<size_t>(place.parts));
    parts.at(static_cast<size_t>(place.part)) = ours.at(in_first_block(place.ours)).front();
  }
  return rows;
}

// The rows of the parts that stand above this one, and its own.
struct RowSlice {
  int64_t first = 0, rows = 0;
};
RowSlice slice_of(const TensorPlace& place, const RowsOfParts& rows) {
  const std::vector<int64_t>& parts = rows.at(place.theirs);
  const auto own = parts.begin() + place.part;
  return {.first = std::accumulate(parts.begin(), own, int64_t{0}), .rows = *own};
}

Shape their_shape(const TensorPlace& place, Shape shape, const RowsOfParts& rows) {
  if (place.transposed) std::swap(shape.at(0), shape.at(1));
  if (place.stacked) {
    const std::vector<int64_t>& parts = rows.at(place.theirs);
    shape.front() = std::accumulate(parts.begin(), parts.end(), int64_t{0});
    return shape;
  }
  shape.back() *= place.parts;
  shape.front() += place.unused_rows;
  return place.shape.empty() ? shape : place.shape;
}

// "columns 0..767, transposed".
std::string taken_text(const TensorPlace& place, const Shape& theirs, const RowsOfParts& rows) {
  if (place.mixed_heads > 0) {
    return join_text("rows of part ", place.part + 1, " of ", place.parts, " in each of ", place.mixed_heads, " heads");
  }
  if (place.stacked) {
    const RowSlice slice = slice_of(place, rows);
    return join_text("rows ", slice.first, "..", slice.first + slice.rows - 1);
  }
  std::vector<std::string> steps;
  const int64_t width = theirs.back() / place.parts;
  const int64_t first = place.part * width;
  if (place.parts > 1) steps.push_back(join_text("columns ", first, "..", first + width - 1));
  if (place.transposed) steps.emplace_back("transposed");
  if (place.offset != 0) steps.push_back(join_text("plus ", place.offset));
  if (place.factor != 1) steps.push_back(join_text("times ", place.factor));
  if (place.unused_rows > 0) steps.push_back(join_text("without the first ", place.unused_rows, " rows"));
  if (!place.shape.empty()) steps.push_back(join_text("of shape ", at::IntArrayRef(place.shape)));
  std::string text;
  for (const std::string& step : steps) text += (text.empty() ? "" : ", ") + step;
  return text;
}

// Returns one part of rows [heads * parts * width, ..], in which each head has its rows of all parts.
Tensor part_of_heads(const TensorPlace& place, const Tensor& values) {
  const Tensor heads = values.unflatten(0, {place.mixed_heads, place.parts, -1});
  return heads.select(1, place.part).flatten(0, 1);
}

// Says whether the place only selects rows: such a place has none of the other steps.
[[maybe_unused]] bool is_plain(const TensorPlace& place) {
  return place.offset == 0 && place.factor == 1 && !place.transposed;
}

// `own` is our shape.
Tensor taken_from(const TensorPlace& place, Tensor values, const RowSlice& slice, const Shape& own) {
  HS_DCHECK((place.mixed_heads == 0 && !place.stacked) || is_plain(place));
  if (place.mixed_heads > 0) return part_of_heads(place, values);
  if (place.stacked) return values.narrow(0, slice.first, slice.rows);
  if (place.parts > 1) {
    const int64_t width = values.size(-1) / place.parts;
    values = values.narrow(-1, place.part * width, width);
  }
  if (place.transposed) values = values.t();
  if (place.offset != 0) values = values + place.offset;
  if (place.factor != 1) values = values * place.factor;
  if (place.unused_rows > 0) values = values.slice(0, place.unused_rows);
  return place.shape.empty() ? values : values.reshape(own);
}

// Inverts taken_from() for one tensor, without the tensors that stand beside it.
Tensor put_back(const TensorPlace& place, Tensor values) {
  HS_DCHECK(place.mixed_heads == 0 && !place.theirs.empty());
  if (!place.shape.empty()) values = values.reshape(place.shape);
  if (place.unused_rows > 0) values = at::cat({values.new_zeros({place.unused_rows, values.size(1)}), values});
  if (place.factor != 1) values = values / place.factor;
  if (place.offset != 0) values = values - place.offset;
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
  const RowsOfParts rows = rows_of_parts(places, ours);
  std::map<std::string, std::string> full_of;  // by their plain names: one tensor may be cut for several of ours
  std::map<std::string, std::string> taken;
  for (const TensorPlace& place : places) {
    const Shape& own = ours.at(in_first_block(place.ours));
    if (place.theirs.empty()) {
      mapping->add("zeros", "", place.ours, [own] { return at::zeros(own); });
      continue;
    }
    const Shape shape = their_shape(place, own, rows);
    if (!place.copies.empty()) {
      std::vector<std::string> names = {place.theirs};
      names.insert(names.end(), place.copies.begin(), place.copies.end());
      const auto made = [place, own](const Tensor& values) { return taken_from(place, values, {}, own); };
      const std::string how = taken_text(place, shape, rows);
      taken.emplace(place.ours, mapping->copy_tied(names, shape, {.target = place.ours, .taken = how, .made = made}));
      continue;
    }
    if (!full_of.contains(place.theirs)) {
      full_of.emplace(place.theirs, mapping->take(place.theirs, shape, advice_on(place, places, *mapping)));
    }
    const std::string& full = full_of.at(place.theirs);
    taken.emplace(place.ours, full);
    const RowSlice slice = place.stacked ? slice_of(place, rows) : RowSlice{};
    mapping->add(full, taken_text(place, shape, rows), place.ours,
                 [from = mapping->shared_directory(), full, place, slice, own] {
                   return taken_from(place, from->read(full), slice, own);
                 });
  }
  return taken;
}

NamedTensors fill_places(const TensorPlaces& places, const ModelToWrite& model, const std::string& prefix,
                         const std::vector<std::string>& heads) {
  const at::NoGradGuard no_grad;
  std::map<std::string, std::vector<Tensor>> parts;  // by their full names
  std::map<std::string, int64_t> joined_along;
  for (const TensorPlace& place : places) {
    check_writable_values(model, place.ours);
    if (place.theirs.empty()) {
      HS_CHECK(!model.tensors.at(place.ours).any().item<bool>(), "the model's ", place.ours,
               " is not zero, and this model type has no place for it; only headshare reads such a model");
      continue;
    }
    std::vector<Tensor>& beside = parts[place_name(place.theirs, prefix, heads)];
    beside.resize(static_cast<size_t>(place.parts));
    beside.at(static_cast<size_t>(place.part)) = put_back(place, model.tensors.at(place.ours));
    joined_along[place_name(place.theirs, prefix, heads)] = place.stacked ? 0 : -1;
  }
  NamedTensors filled;
  for (const auto& [name, beside] : parts) {
    filled.emplace(name, beside.size() == 1 ? beside[0] : at::cat(beside, joined_along.at(name)));
  }
  return filled;
}

}  // namespace headshare
