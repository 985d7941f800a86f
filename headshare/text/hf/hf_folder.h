// Reads what stands beside the files of a tokenizer in a folder that transformers wrote.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "headshare/text/added/added_token.h"
#include "headshare/text/hf/hf_tokenizer_config.h"

namespace headshare {

// These tokens are listed or named by other files of a tokenizer's folder.
struct TokensBeside {
  std::vector<AddedToken> tokens;  // those that a file only names have kIdOfText (hf_parts.h)
  bool decides = false;            // options of tokens with ids count, whatever tokenizer.json says of them
  std::map<std::string, std::string> names = {};  // "cls_token" -> "[CLS]"
  std::optional<bool> adds_begin = {};            // add_bos_token: whether the bos_token stands before every text
};

// The added tokens that tokenizer_config.json lists (added_tokens_decoder, which decides) or, without such a list,
// added_tokens.json; and behind them the special tokens that tokenizer_config.json and special_tokens_map.json name, in
// the order in which transformers 5 numbers them: bos, eos, unk, sep, pad, cls, mask, then every other key that ends in
// _token, then extra_special_tokens or additional_special_tokens. The first of two entries of a token counts; none
// where there are no such files. The other files stand in the folder of `config`, and are untrusted: throws Error
// naming the file, also where it asks for special tokens to be left in the text.
TokensBeside tokens_beside(const HfTokenizerConfig& config);

}  // namespace headshare
