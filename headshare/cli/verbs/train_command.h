// Other verbs ask `train` for this.
#pragma once

#include <string>

#include "headshare/models/model_kind.h"

namespace headshare {

// Returns the model that `headshare train --config FILE` would train, as far as it is known before data is read: the
// vocabulary is that of the tokenizer that the file names, else the one that a tokenizer is asked for. Throws
// UsageError as `train` does, and Error as load_tokenizer does.
ModelOptions configured_model(const std::string& config);

}  // namespace headshare
