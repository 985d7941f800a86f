// The one list of Hugging Face's model types: --from hf and --to hf, `cost`, help and messages read it.
#pragma once

#include "headshare/convert/hf/model_type.h"

namespace headshare {

// If several types could hold a model that is written, the first of them counts.
const std::vector<HfModelType>& hf_model_types();

// The row of the type that a directory's config.json names. Throws Error, listing those known, for a type whose tensors
// are not read.
const HfModelType& type_to_open(const HfDirectory& directory);

// The first row that has a place for a model of these options; nullptr where none has.
const HfModelType* type_to_write(const ModelOptions& options);

// "" where there is such a row; else why the nearest row, which has the fewest objections, has no place for the model.
// Where several rows are as near, the text has a reason of each.
std::string why_no_type_holds(const ModelOptions& options);

// Returns "decoders as GPT-2 and encoders as BERT, DistilBERT or ALBERT".
std::string written_types_text();

}  // namespace headshare
