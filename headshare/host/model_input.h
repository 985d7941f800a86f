// These functions load trained models and keep --overwrite from deleting them.
#pragma once

#include "headshare/models/checkpoint.h"

namespace headshare {

// Loads a model as load_model() does and moves it to `device`.
LoadedModel load_model_on(const fs::path& path, c10::Device device);

// Throws Error where `model`, a checkpoint that `option` names, lies in `out`: --overwrite must not delete a model that
// the run reads.
void refuse_model_in_out(const std::string& option, const fs::path& model, const fs::path& out);

}  // namespace headshare
