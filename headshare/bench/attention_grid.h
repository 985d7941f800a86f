// A grid over schemes, sizes, masks, dropout and passes gives the cases of one run of the attention benchmarks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headshare/base/options/field.h"
#include "headshare/bench/attention_case.h"

namespace headshare {

struct AttentionGrid {
  std::vector<std::string> schemes = {"mha", "mqa", "mhe_add", "mhe_mul", "collaborative"};
  std::vector<std::string> passes = {"forward", "training"};
  std::vector<std::string> masks = {"full", "causal"};
  std::vector<std::string> dropout = {"0", "0.1"};  // above 0 for training only
  std::vector<std::string> dropout_masks = {"per_head"};
  std::vector<std::string> precisions = {"fp32"};
  std::vector<int64_t> heads = {12};
  std::vector<int64_t> lengths = {512};
  std::vector<int64_t> key_widths = {};  // R of collaborative; empty: 2 D
  int64_t head_width = 64;
  int64_t tokens = 2048;  // B = tokens / length, at least 1
  std::optional<int64_t> batch_size = {};
  std::optional<int64_t> queries = {};  // default as many as keys
  c10::Device device = c10::Device(c10::kCPU);
};

Fields fields(AttentionGrid& grid);

// Returns B for sequences of this length.
int64_t batch_size_of(const AttentionGrid& grid, int64_t length);

// Throws Error on a name that is not `known`.
std::vector<Precision> precisions_of(const AttentionGrid& grid, const EnumNames<Precision>& known);

// Lists all combinations that make sense, schemes innermost. Throws Error on names that do not exist, and when nothing
// is left.
std::vector<AttentionCase> cases_of(const AttentionGrid& grid);

}  // namespace headshare
