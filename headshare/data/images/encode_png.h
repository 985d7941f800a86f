// An image becomes the bytes of a PNG file.
#pragma once

#include <string>

#include "headshare/data/images/image.h"

namespace headshare {

// Takes 1 channel (grey), 3 (red, green and blue) or 4 (those and opacity), of 8 bits.
std::string encode_png(const Image& image);

}  // namespace headshare
