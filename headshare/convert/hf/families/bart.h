// BART (Lewis et al., 2020) and mBART (Liu et al., 2020), whose norms stand before, as transformers saves them.
#pragma once

#include "headshare/convert/hf/model_type.h"

namespace headshare {

// Read BartForConditionalGeneration or BartModel, and mBART's likewise. What config.json alone tells leaves out the
// output bias: whether there is one, the tensors say. mBART is refused where no file says in which language it writes.
// Not written, as MarianMT.
HfModelType bart_type();
HfModelType mbart_type();

}  // namespace headshare
