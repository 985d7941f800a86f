// The one list of Hugging Face's model types: --from hf and --to hf, `cost`, help and messages read it.
#pragma once

#include "headshare/convert/hf/model_type.h"

namespace headshare {

// If several types could hold a model that is written, the first of them counts.
const std::vector<HfModelType>& hf_model_types();

// The value of "model_type". A directory of timm has none, and an "architecture" instead.
nlohmann::json model_type_of(const HfConfig& config);

// The row of the type that a directory's config.json names. Throws Error, listing those known, for a type whose tensors
// are not read.
const HfModelType& type_to_open(const HfDirectory& directory);

// ", which ...": what keeps out a model type that people may expect here; "" for another.
std::string why_type_is_missing(const std::string& name);

// The types that are written, by name: "gpt2".
std::vector<std::string> written_types();

// The first row that has a place for a model of these options, or the one of that name if it has; nullptr where none
// has.
const HfModelType* type_to_write(const ModelOptions& options, const std::string& name = "");

// "" where there is such a row; else why the nearest row, which has the fewest objections, has no place for the model.
// Where several rows are as near, the text has a reason of each.
std::string why_no_type_holds(const ModelOptions& options, const std::string& name = "");

// Returns "decoders as GPT-2 and encoders as BERT, DistilBERT or ALBERT".
std::string written_types_text();

}  // namespace headshare
