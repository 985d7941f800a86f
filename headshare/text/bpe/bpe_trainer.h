// Learns a byte-level BPE from counted words.
#pragma once

#include "headshare/text/bpe/merge_trainer.h"

namespace headshare {

struct BpeTrainingOptions {
  int64_t vocabulary_size = 0;  // with the 256 bytes and <|endoftext|>
  int64_t min_count = 1;        // a pair must occur this often to be merged
  bool end_of_text = true;      // <|endoftext|> as id 0
};

// Starts with the 256 bytes in the order of their code points in the alphabet; learn_merges() adds to them. The result
// does not depend on the order of `counts`. Throws Error when vocabulary_size does not hold the bytes.
BpeDefinition train_bpe(const WordCounts& counts, const BpeTrainingOptions& options);

}  // namespace headshare
