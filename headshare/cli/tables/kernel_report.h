// This report tells which attention kernel runs for a model, and what keeps the faster ones from it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headshare/attention/kernel_choice.h"
#include "headshare/base/options/field.h"
#include "headshare/host/runtime_options.h"
#include "headshare/models/checkpoint.h"
#include "headshare/ops/precision.h"

namespace headshare {

struct KernelOptions {
  int64_t batch_size = 8;
  std::optional<int64_t> queries;  // T; default: three usual situations
  std::optional<int64_t> keys;     // S; default the model's context
  bool causal = true;
  bool padding = false;
  bool training = false;  // with `queries`: gradients are wanted, and attention dropout counts
  Precision precision = Precision::kFp32;
};

Fields fields(KernelOptions& options);

// A row is a situation in which a model attends.
struct KernelRow {
  std::string name;  // "training"
  AttentionSituation situation;
  double dropout = 0;  // on the attention weights
  BackendChoice choice;
};

// Lists the situations. In an encoder no query is causal, and nothing is decoded. An encoder-decoder attends in three
// places: those stand before the situation ("cross-attention: decoding").
std::vector<KernelRow> kernel_rows(const KernelOptions& options, const ModelOptions& resolved, c10::Device device);

// Returns one object per row: {"situation", "batch_size", "queries", "keys", "causal", "padding", "precision",
// "dropout", "backend", "fused", "products", "refused": [{"backend", "reasons"}]}.
nlohmann::ordered_json kernel_report(const std::vector<KernelRow>& rows);

std::string kernel_text(const std::vector<KernelRow>& rows, int width);

}  // namespace headshare
