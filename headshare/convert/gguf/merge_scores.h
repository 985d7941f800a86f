// llama.cpp's BPE over characters (tokenizer.ggml.model "llama") has a score for each token and no list of merges.
#pragma once

#include <string>
#include <vector>

#include "headshare/text/bpe/character_bpe.h"

namespace headshare {

// llama.cpp merges the two neighbours whose text together is the token with the highest score, the leftmost first, and
// so on until no neighbours are a token together. The result has a score for each of `spellings`, the tokens of the
// model by id, with which it merges every text as the definition's merges do. Throws Error, naming a token, where no
// scores do.
//
// Why a look at single tokens is enough: if neighbours A and B stand somewhere in the course of merging a text, then
// merging the text A B alone comes to the neighbours A and B as well, because what is merged within A B, and in which
// order, does not depend on what stands around it. So at most one pair makes a token T, the one that merging T's own
// text comes to, and the score of T is minus the rank of that pair. Where that pair is no merge, llama.cpp would merge
// it.
std::vector<float> merge_scores(const CharacterBpeDefinition& definition, const std::vector<std::string>& spellings);

}  // namespace headshare
