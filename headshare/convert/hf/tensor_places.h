// The tensors of a family as a table that reads them and writes them.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "headshare/convert/foreign/model_to_write.h"
#include "headshare/convert/hf/mapping.h"

namespace headshare {

// A tensor of ours, and where its values stand among a family's.
struct TensorPlace {
  std::string theirs;  // without the prefix that some files have; "": there is none, and ours is zeros
  std::string ours;
  std::vector<std::string> copies = {};  // other names under which files may have the same values
  int64_t part = 0, parts = 1;           // theirs holds `parts` of ours side by side in its last dimension
  bool stacked = false;                  // the parts stand one below the other instead, and may differ in their rows
  bool transposed = false;               // theirs is [in, out], a Conv1D's
  int64_t unused_rows = 0;               // theirs begins with rows that nothing reads
  std::vector<int64_t> shape = {};       // theirs has this shape, and the same values one after another
  double offset = 0, factor = 1;         // ours is (theirs + offset) times factor
  int64_t mixed_heads = 0;               // above 0: theirs holds, for each of so many heads, the rows of every part
};
using TensorPlaces = std::vector<TensorPlace>;

// Adds a layer's weight and bias, or those of each part of each block: "encoder.layer." + number + "." + part, ours
// after `our_prefix`.
void add_pair(const std::string& theirs, const std::string& ours, TensorPlaces* places);
using BlockParts = std::vector<std::pair<std::string, std::string>>;  // theirs, ours
void add_blocks(const std::string& prefix, const BlockParts& parts, int64_t layers, TensorPlaces* places,
                const std::string& our_prefix = "blocks.");

// Maps each tensor of ours, in the order of the table, after checking the shape of theirs. `options` are resolved.
// Returns our names with theirs in full.
std::map<std::string, std::string> take_places(const TensorPlaces& places, const ModelOptions& options,
                                               HfMapping* mapping);

// A model's tensors at their places: those whose name there begins with one of `heads` under that name, the others
// behind `prefix`. Rows that nothing reads are zeros; copies are not written. Throws Error for values that are not
// finite, and where a tensor without a place has others than zeros. Places with mixed heads are only read.
NamedTensors fill_places(const TensorPlaces& places, const ModelToWrite& model, const std::string& prefix,
                         const std::vector<std::string>& heads);

}  // namespace headshare
