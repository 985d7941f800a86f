// Learns a WordPiece vocabulary from counted words.
#pragma once

#include "headshare/text/bpe/merge_trainer.h"
#include "headshare/text/wordpiece/wordpiece_tokenizer.h"

namespace headshare {

struct WordPieceTrainingOptions {
  int64_t vocabulary_size = 0;  // with special tokens and single characters
  int64_t min_count = 1;        // a pair must occur this often to be merged
  BertNormalization normalization;
};

// Learns a vocabulary from words as for_each_bert_word gives them: the five special tokens, the 1000 most frequent
// characters (ties: the smaller code point) in the order of their code points, those of them that occur inside words
// once more with ##, then what learn_merges joins.
//
// This is Hugging Face's WordPieceTrainer with the settings of BertWordPieceTokenizer: it counts pairs
// as BPE does and keeps only the vocabulary; the likelihood by which Wu et al. 2016 chose pairs was
// never published as code. As there, a rarer character is left out of its words. Hugging Face numbers
// the ## characters in the order of a hash table, so that its ties fall differently from run to run;
// here the result depends on nothing but the counts. Throws Error when vocabulary_size does not hold
// the special tokens and the characters.
WordPieceDefinition train_wordpiece(const WordCounts& counts, const WordPieceTrainingOptions& options);

}  // namespace headshare
