// The cost model says what each attention scheme takes in a model of one shape: parameters, cache and what fits into
// memory. It allocates nothing.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "headshare/models/data_parallel.h"
#include "headshare/models/model_kind.h"

namespace headshare {

// An ElementType says how weights or cached keys and values are stored. The scales of int8 are not counted.
enum class ElementType { kFp32, kBf16, kInt8 };

int64_t element_bytes(ElementType type);
std::string element_name(ElementType type);  // "fp32"

// A CountDifference says how the parameters of a model that another program made differ from those that its options
// have here.
struct CountDifference {
  bool output_bias = true;   // false: where our options have biases, the model has none on output projections
  int64_t fixed_tables = 0;  // tables of sinusoids, which the other program counts as parameters
  int64_t unused_rows = 0;   // rows of embeddings that no token has
  int64_t zero_biases = 0;   // numbers in biases that the model has not, and that are zeros here
};

// Counts the parameters that such options have and the model lacks; the number is below 0 where the model has more.
int64_t surplus_parameters(const CountDifference& counts, const TransformerOptions& resolved);

struct CostOptions {
  std::string kind = "decoder";  // the name of one of model_kinds()
  ModelOptions model;            // options of that kind; their scheme is own_scheme, or nothing
  std::vector<std::string> schemes = {"all"};
  std::string sweep;
  std::optional<double> memory_budget;
  int64_t batch_size = 1;
  ElementType weight_type = ElementType::kFp32;
  ElementType cache_type = ElementType::kFp32;
  DataParallelOptions workers = {};

  // These describe the model that take_model() took; without one they are empty.
  std::string own_scheme = {};
  CountDifference counts = {};
  std::set<std::string> given = {};  // options that the user set, and that every scheme gets
};

// Returns the options that a kind begins with (ModelKind::costed).
CostOptions cost_options(const std::string& kind = "decoder");

// The fields ask about the model: schemes, kind, sweep, budget and types of elements.
Fields fields(CostOptions& options);

// Lists the options of every kind of model that is asked about; `schemes` stands for the scheme.
Fields model_fields(TransformerOptions& model);

// A sweep takes these fields: the options that all kinds have, of an encoder its token embedding, and of a vision
// transformer what it has instead of text.
Fields swept_fields(ModelOptions& model);

// Makes an existing model the one that is asked about: sets kind, model and own_scheme.
void take_model(const ModelOptions& read, CostOptions* options);

struct Sweep {
  std::string name;
  std::vector<std::string> values;
};

// Reads "heads=4,8,16"; "" is no sweep. Throws Error.
Sweep parse_sweep(const std::string& text, Fields model);

// A SchemeCost says what one scheme takes, or why it is impossible.
struct SchemeCost {
  std::string scheme;
  std::string sweep_value;  // "" without a sweep
  std::string impossible;   // the reason; the rest is then empty
  ModelOptions model;       // resolved
  ModelSize size;
  int64_t cache_bytes_per_token = 0;         // of the whole model, in CostOptions::cache_type
  int64_t source_cache_bytes_per_token = 0;  // of the attention of an encoder-decoder to the source, likewise
  int64_t largest_batch = 0;
  int64_t longest_context = 0;
  bool weights_fit = true;  // the weights fit into the memory budget
};

// Returns the costs of every scheme asked for, the model's own first. Throws Error where none is possible.
std::vector<SchemeCost> all_costs(const CostOptions& options, const Sweep& sweep);

// Counts the attention parameters of the model if all its heads had their own projections.
int64_t mha_parameters(const ModelOptions& model);

}  // namespace headshare
