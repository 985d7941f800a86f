// Which weights a directory of results was made of.
#pragma once

#include "headshare/base/file.h"

namespace headshare {

constexpr const char* kWeightsFile = "weights.json";
constexpr const char* kTeacherFile = "teacher.json";  // of the model from which others learned

// Notes in directory/`file` a fingerprint of the checkpoint's weights. Throws Error when an earlier call noted others:
// some results there would be of one model, some of another.
void note_weights(const fs::path& directory, const fs::path& checkpoint, const char* file = kWeightsFile);

}  // namespace headshare
