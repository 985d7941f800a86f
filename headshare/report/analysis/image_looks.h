// Shows where the heads of a vision transformer look in images.
#pragma once

#include <string>

#include "headshare/report/analysis/head_analysis.h"

namespace headshare {

// Returns for each image and layer a row of pictures: the image as the model sees it, then for each head its attention
// as a heat map on the grey image. "" without images.
std::string image_looks_html(const HeadAnalysis& analysis);

}  // namespace headshare
