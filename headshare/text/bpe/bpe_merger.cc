#include "headshare/text/bpe/bpe_merger.h"

#include <algorithm>

#include "headshare/base/error.h"

namespace headshare {

BpeMerger::BpeMerger(const BpeDefinition& definition, const std::string& where) : merger_(definition.merges, where) {
  std::fill(std::begin(byte_ids_), std::end(byte_ids_), -1);
  for (size_t id = 0; id < definition.tokens.size(); ++id) {
    const std::string& token = definition.tokens[id];
    const bool special = std::binary_search(definition.special.begin(), definition.special.end(), id);
    if (token.size() == 1 && !special) byte_ids_[static_cast<unsigned char>(token[0])] = static_cast<int32_t>(id);
  }
  const auto missing = std::find(std::begin(byte_ids_), std::end(byte_ids_), -1);
  HS_CHECK(missing == std::end(byte_ids_), where, ": no token for the byte ", missing - std::begin(byte_ids_),
           "; a byte-level vocabulary has all 256 single bytes (train with them as the initial alphabet)");
}

void BpeMerger::merge(std::string_view word, Scratch* scratch, std::vector<int32_t>* ids) const {
  HS_CHECK(word.size() <= INT32_MAX, "a single word of ", word.size(), " bytes: the longest is ", INT32_MAX,
           "; give the text in pieces");
  scratch->tokens.resize(word.size());
  for (size_t i = 0; i < word.size(); ++i) scratch->tokens[i] = byte_id(word[i]);
  merger_.merge(scratch, ids);
}

}  // namespace headshare
