// Merges the bytes of one word to token ids, for byte-level BPE.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/text/added/added_token.h"
#include "headshare/text/bpe/begin_of_pair.h"
#include "headshare/text/bpe/split_rule.h"
#include "headshare/text/bpe/token_merger.h"
#include "headshare/text/interface/vocabulary.h"

namespace headshare {

// These special tokens have roles, by their texts.
enum class BpeRoles {
  kRoberta,  // <s> and </s> where both are there, with <pad>, <unk> and <mask>
  kBert,     // [CLS], [SEP], [PAD], [UNK] and [MASK]: ModernBERT
  kDecoder,  // <pad> and <unk> alone: a decoder, which has no <s> and </s> around a text
};

// A byte-level BPE tokenizer is made of this.
struct BpeDefinition {
  std::vector<std::string> tokens;     // by id: the bytes of ordinary tokens, the text of special ones
  std::vector<TokenMerge> merges;      // by rank: the first in the list is applied first
  std::vector<int32_t> special;        // ids that no merge produces, ascending
  std::optional<int32_t> end_of_text;  // one of `special`
  SplitRule split = SplitRule::kGpt2;
  bool add_prefix_space = false;       // text that does not begin with a space gets one
  std::vector<AddedToken> added = {};  // by id; special tokens without options need not be there
  // One of `special`: decoders were trained on texts that begin with it. If it is set, only <pad> and <unk> of
  // BpeRoles keep their roles.
  std::optional<int32_t> begin_of_text = {};
  BeginOfPair begin_of_pair = BeginOfPair::kAgain;  // with begin_of_text
  BpeRoles roles = BpeRoles::kRoberta;
  bool composes = false;     // text is normalised to NFC
  bool whole_words = false;  // a word that is a token stays whole, whatever its merges would make of it (ignore_merges)
};

// Finds the token of each byte of a word and merges them by rank (token_merger.h). It is immutable, so thread-safe with
// a Scratch per thread.
class BpeMerger {
 public:
  using Scratch = TokenMerger::Scratch;

  // Throws Error led by `where` when a byte has no token or a pair has two merges. The ids in
  // `definition` must be in its vocabulary.
  BpeMerger(const BpeDefinition& definition, const std::string& where);

  // Appends the ids of `word`, which has fewer than 2^31 bytes.
  void merge(std::string_view word, Scratch* scratch, std::vector<int32_t>* ids) const;

  int32_t byte_id(char byte) const { return byte_ids_[static_cast<unsigned char>(byte)]; }

 private:
  int32_t byte_ids_[256];
  TokenMerger merger_;
};

}  // namespace headshare
