// Tokenizers that have no file: --tokenizer hash-md and hash-lsh.
#pragma once

#include <memory>
#include <string>

#include "headshare/text/tokenizer.h"

namespace headshare {

// The tokenizer of that name, null for another. `merges` is --hash-merges, "" where it was not given; throws Error
// where it does not go with the name.
std::unique_ptr<Tokenizer> make_hash_tokenizer(const std::string& name, const std::string& merges);

}  // namespace headshare
