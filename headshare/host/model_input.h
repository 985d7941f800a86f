// Trained models that a program reads.
#pragma once

#include "headshare/models/checkpoint.h"

namespace headshare {

// load_model, moved to `device`.
LoadedModel load_model_on(const fs::path& path, c10::Device device);

// --overwrite must not delete a model that the run reads: throws Error where `model`, a checkpoint that `option` names,
// lies in `out`.
void refuse_model_in_out(const std::string& option, const fs::path& model, const fs::path& out);

}  // namespace headshare
