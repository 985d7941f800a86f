// What `cost` computes: each attention scheme's parameters and cache for one shape of a model, without allocating it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "headshare/convert/hf/shape.h"

namespace headshare {

enum class ModelKind { kDecoder, kEncoder, kEncoderDecoder };

// An encoder keeps no cache.
inline bool keeps_cache(ModelKind kind) { return kind != ModelKind::kEncoder; }

// How weights or cached keys and values are stored. Of int8 the scales are not counted.
enum class ElementType { kFp32, kBf16, kInt8 };

int64_t element_bytes(ElementType type);
std::string element_name(ElementType type);  // "fp32"

struct CostOptions {
  std::string model_path;            // a model whose shape is asked about; "": the one that the options describe
  TransformerOptions model;          // its scheme is own_scheme, or nothing
  EncoderOptions encoder;            // what an encoder has besides: its parts, its pooler and heads
  EncoderDecoderOptions translator;  // what an encoder-decoder has besides, but for the placement of norms: `encoder`'s
  ModelKind kind = ModelKind::kDecoder;
  std::vector<std::string> schemes = {"all"};
  std::string sweep;
  std::optional<double> memory_budget;
  int64_t batch_size = 1;
  ElementType weight_type = ElementType::kFp32;
  ElementType cache_type = ElementType::kFp32;
  bool json = false;

  // Of the model at model_path:
  std::string own_scheme = {};
  HfShape shape = {};
  std::set<std::string> given = {};  // options that the user set, and that every scheme gets
};

// An encoder starts as one with a masked-LM head.
CostOptions cost_options();

// Every option, under the headings of --help.
Fields own_fields(CostOptions& options);
Fields model_fields(TransformerOptions& model);  // `schemes` stands for its scheme
Fields translator_fields(EncoderDecoderOptions& translator);

// What --sweep takes: those of `model`, and an encoder's token embedding in `options`.
Fields swept_fields(TransformerOptions& model, CostOptions& options);

// Sets kind, model, encoder and translator to what is at options->model_path: a headshare model or run directory, a
// Hugging Face directory or its config.json, or a YAML file of options of `train`. Throws Error as read_options,
// read_hf_shape and configured_model do.
void take_model(CostOptions* options);

struct Sweep {
  std::string name;
  std::vector<std::string> values;
};

// "heads=4,8,16"; "" is no sweep. Throws Error.
Sweep parse_sweep(const std::string& text, Fields model);

// One line of the table, or why there is none.
struct Cost {
  std::string scheme;
  std::string sweep_value;  // "" without a sweep
  std::string impossible;   // the reason; the rest is then empty
  ModelOptions model;       // resolved
  ModelSize size;
  int64_t cache_bytes_per_token = 0;         // the whole model, in CostOptions::cache_type
  int64_t source_cache_bytes_per_token = 0;  // likewise, of an encoder-decoder's attention to the source
  int64_t largest_batch = 0;
  int64_t longest_context = 0;
  bool weights_fit = true;  // into the memory budget
};

// Every scheme asked for, the model's own first. Throws Error where none is possible.
std::vector<Cost> all_costs(const CostOptions& options, const Sweep& sweep);

}  // namespace headshare
