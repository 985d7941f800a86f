// What other verbs ask of `train`.
#pragma once

#include <string>

#include "headshare/models/model_options.h"

namespace headshare {

// The model that `headshare train --config FILE` would train, as far as it is known before data is read: the vocabulary
// of text is the one that the tokenizer is asked for. Throws UsageError as `train` does.
ModelOptions configured_model(const std::string& config);

}  // namespace headshare
