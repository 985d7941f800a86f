// The tokenizer of a converted model, for both of its sides where it has two.
#pragma once

#include <memory>
#include <string>

#include "headshare/base/files/file.h"
#include "headshare/models/checkpoint.h"

namespace headshare {

// Reads the tokenizer that lies beside a foreign model. Throws Error as load_tokenizer does, with the ways to convert
// the model all the same.
std::unique_ptr<Tokenizer> load_foreign_tokenizer(const fs::path& path);

// One tokenizer for both sides of an encoder-decoder, and the only one of another model. Where it puts the token of a
// language before texts, that of targets is the first token that the model is forced to write. Throws Error led by
// `where` for a tokenizer with languages beside a model without, and for one that puts nothing around texts beside an
// encoder-decoder.
TokenizerPair both_sides(const std::shared_ptr<Tokenizer>& one, const ModelOptions& model, const std::string& where);

}  // namespace headshare
