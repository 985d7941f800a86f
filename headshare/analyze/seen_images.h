// Pictures show where the heads of a vision transformer look.
#pragma once

#include <string>
#include <vector>

#include "headshare/models/vision.h"
#include "headshare/report/analysis/head_analysis.h"

namespace headshare {

// Images are read as `predict` reads them, and run through the model, which is in evaluation mode, one by one.
// Attention weights are those of the reference path, whatever kernel the model computes with: of every scheme. Throws
// Error, naming the image, where one cannot be read, and for more than kMostLookedAt of them.
std::vector<LookedAtImage> look_at_images(const VisionTransformer& model, const std::vector<std::string>& paths);

inline constexpr int64_t kMostLookedAt = 64;

}  // namespace headshare
