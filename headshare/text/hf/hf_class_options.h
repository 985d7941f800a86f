// Some classes of transformers build a part of their tokenizer from tokenizer_config.json, whatever tokenizer.json
// says.
#pragma once

#include <nlohmann/json.hpp>

#include "headshare/text/hf/hf_tokenizer_config.h"

namespace headshare {

// Changes a tokenizer.json as transformers does for the class that `config` names. Throws Error, naming the file, for
// values of another type.
// - BertTokenizer and those that are mapped to it take case, accents and Chinese characters from do_lower_case (true
//   where it is missing), strip_accents and tokenize_chinese_chars.
// - GPT2Tokenizer, RobertaTokenizer and BartTokenizer take add_prefix_space (false where it is missing).
// - Other classes, and folders that name none, leave the file as it is.
void apply_class_options(const HfTokenizerConfig& config, nlohmann::json* tokenizer);

}  // namespace headshare
