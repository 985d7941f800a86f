// A model goes out as a format holds it: as it is, or with its heads rewritten exactly as a scheme that the format has.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headshare/convert/exact/exact_model.h"
#include "headshare/convert/foreign/foreign_format.h"

namespace headshare {

struct ExportPlan {
  const ForeignFormat* format = nullptr;
  std::string form = {};                 // one of the format's, "" for the first that fits
  std::optional<ExactTarget> fold = {};  // what heads are rewritten as; nothing: they stay
  ModelOptions options = {};             // of the model as it is written
};

// The first way to write a model of these options: as it is, with as few key heads as it has, with all heads apart.
// Throws Error with the format's reason where there is none.
ExportPlan plan_export(const ForeignFormat& format, const std::string& form, const ModelOptions& model);

// Returns sentences for people about what changes on the way.
std::vector<std::string> export_losses(const ExportPlan& plan, const ModelOptions& model);

// The model as it is written. Throws Error where weights do not allow the plan's fold.
ModelToWrite prepared_for_export(const ModelToWrite& model, const ExportPlan& plan);

// Reads `directory`, which the plan's format wrote, and returns how far its outputs are from those of `model`. Throws
// Error where that is more than 1e-4, and where the format reads nothing back.
double check_export(const ModelToWrite& model, const ExportPlan& plan, const fs::path& directory);

}  // namespace headshare
