// Reads and writes Unigram tokenizers in our own JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "headshare/text/unigram/unigram_tokenizer.h"

namespace headshare {

// write_unigram adds to `object` what read_unigram reads. Throws Error led by `where`.
void write_unigram(const UnigramDefinition& definition, nlohmann::json* object);
UnigramDefinition read_unigram(const nlohmann::json& object, const std::string& where);

// Makes a step that puts `to` for `from`, or for runs of spaces where `from` is empty. Throws Error led by `where` for
// texts that are longer than any tokenizer has.
NormalStep replacing_step(const std::string& from, const std::string& to, const std::string& where);

// Throws Error led by `where` for more steps than any tokenizer has.
void check_steps(size_t count, const std::string& where);

}  // namespace headshare
