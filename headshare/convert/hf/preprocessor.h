// preprocessor_config.json of Hugging Face transformers says how an image becomes the numbers that a model reads.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headshare/base/files/file.h"
#include "headshare/models/vision_options.h"

namespace headshare {

// Sets the mean and the deviation of pixels from the file in `directory`; adds to `notes` what it makes of images that
// headshare does not, and that it is missing. Throws Error, naming the file and the key, for values that are damaged
// or of another number of channels.
void read_preprocessor(const fs::path& directory, VisionOptions* options, std::vector<std::string>* notes);

// Returns the content of the file for a model: its image processor does what headshare does.
nlohmann::json written_preprocessor(const VisionOptions& options);

}  // namespace headshare
