// Our decoders as CTranslate2's TransformerDecoderSpec: in GPT-2's form or in Llama's.
#pragma once

#include <string>

#include "headshare/convert/ctranslate2/ct2_file.h"
#include "headshare/convert/foreign/foreign_model.h"
#include "headshare/convert/foreign/model_to_write.h"

namespace headshare {

// "" where a model of these options has a place; else the reason.
std::string why_not_ct2(const ModelOptions& options);

// Tells whether CTranslate2 caches the one key and value of a layer, as it does where a flag of its older files asks
// for that. Without the flag it copies keys and values to every head before it caches them.
bool ct2_caches_one_head(const ModelOptions& options, const std::string& form);

// The model.bin. Throws Error for values that are not finite.
Ct2File ct2_of(const ModelToWrite& model, bool one_head_cache);

// This stands in config.json, because model.bin does not say it.
struct Ct2Settings {
  double norm_epsilon = 0;
  int64_t context = 0;
  RotaryScaling scaling = {};
};

// Returns the model that ct2_of() wrote. Throws Error where the rotation of model.bin is another than that of the
// settings.
ForeignModel model_of_ct2(const Ct2File& file, const Ct2Settings& settings);

}  // namespace headshare
