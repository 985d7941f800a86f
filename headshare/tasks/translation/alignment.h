// The alignment of a translation tells which source tokens it looked at.
#pragma once

#include <span>
#include <vector>

#include "headshare/models/encoder_decoder.h"
#include "headshare/text/text_borders.h"

namespace headshare {

// Returns for each target token the place of the source token with the largest weight when it was predicted. The weight
// is the mean over the heads of cross-attention in the last layer but one (of one layer: that), which follows
// translations best (Garg et al., 2019). `borders` stand around the text in `source`: they are looked at but never
// named, and places are counted from the first token of the text; `target` comes without its start. Runs the decoder
// once over the whole target, in evaluation mode and without gradients.
std::vector<int64_t> aligned_sources(const EncoderDecoder& model, std::span<const int32_t> source,
                                     const TextBorders& borders, std::span<const int32_t> target);

}  // namespace headshare
