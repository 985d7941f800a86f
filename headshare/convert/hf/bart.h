// BART (Lewis et al., 2020) and mBART (Liu et al., 2020), whose norms stand before, as transformers saves them.
#pragma once

#include "headshare/convert/foreign.h"
#include "headshare/convert/hf/directory.h"

namespace headshare {

// What config.json alone tells, without the output bias: whether there is one, the tensors say.
EncoderDecoderOptions bart_options(const HfConfig& config);
EncoderDecoderOptions mbart_options(const HfConfig& config);

// Read a directory of BartForConditionalGeneration or BartModel, and of mBART's likewise. Throw Error as map_gpt2()
// does; mBART's also where no file says in which language it writes.
ForeignModel map_bart(const std::shared_ptr<const HfDirectory>& directory);
ForeignModel map_mbart(const std::shared_ptr<const HfDirectory>& directory);

}  // namespace headshare
