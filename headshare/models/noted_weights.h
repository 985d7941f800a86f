// A directory of results notes which weights they were made from.
#pragma once

#include "headshare/base/files/file.h"

namespace headshare {

constexpr const char* kWeightsFile = "weights.json";
constexpr const char* kTeacherFile = "teacher.json";  // notes the model from which others learned

// Returns a fingerprint of the checkpoint's weights.
std::string weights_fingerprint(const fs::path& checkpoint);

// Notes in directory/`file` a fingerprint of the checkpoint's weights. Throws Error when an earlier call noted other
// weights, because the results there would come from two models.
void note_weights(const fs::path& directory, const fs::path& checkpoint, const char* file = kWeightsFile);

}  // namespace headshare
