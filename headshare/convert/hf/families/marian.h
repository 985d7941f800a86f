// MarianMT, the models of OPUS-MT (Tiedemann & Thottingal, 2020), as transformers saves them.
#pragma once

#include "headshare/convert/hf/model_type.h"

namespace headshare {

// Reads MarianMTModel and MarianModel. Their text needs source.spm and target.spm, whatever other tokenizer is there.
// A shape from config.json alone has no output bias: only the tensors say whether there is one. Such models are not
// written: marks and SentencePiece models would have to go out with them.
HfModelType marian_type();

}  // namespace headshare
