// MarianMT, the models of OPUS-MT (Tiedemann & Thottingal, 2020), as transformers saves them.
#pragma once

#include "headshare/convert/hf/model_type.h"

namespace headshare {

// Reads MarianMTModel and MarianModel. Their text needs source.spm and target.spm, whatever other tokenizer is there.
// What config.json alone tells leaves out the output bias: whether there is one, the tensors say. Not written: marks
// and SentencePiece models would have to go out with it.
HfModelType marian_type();

}  // namespace headshare
