// MarianMT, the models of OPUS-MT (Tiedemann & Thottingal, 2020), as transformers saves them.
#pragma once

#include "headshare/convert/foreign.h"
#include "headshare/convert/hf/directory.h"

namespace headshare {

// What config.json alone tells, without the output bias: whether there is one, the tensors say.
EncoderDecoderOptions marian_options(const HfConfig& config);

// Reads a directory of MarianMTModel or MarianModel. Its text needs source.spm and target.spm, whatever other
// tokenizer is there. Throws Error as map_gpt2() does.
ForeignModel map_marian(const std::shared_ptr<const HfDirectory>& directory);

}  // namespace headshare
