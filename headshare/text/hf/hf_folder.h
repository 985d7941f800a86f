// What stands beside the files of a tokenizer in a folder that transformers wrote.
#pragma once

#include <filesystem>
#include <vector>

#include "headshare/text/added/added_token.h"

namespace headshare {

// The added tokens that tokenizer_config.json lists (added_tokens_decoder) or, without such a list, added_tokens.json
// and special_tokens_map.json; and the special tokens that these files name. A token without an id has kIdOfText, or
// kIdOfTextOrNext where it is one of additional_special_tokens or extra_special_tokens (hf_parts.h). The first of two
// entries of a token counts; none where there are no such files. The files are untrusted: throws Error naming the file,
// also where it asks for special tokens to be left in the text.
std::vector<AddedToken> added_tokens_in(const std::filesystem::path& folder);

}  // namespace headshare
