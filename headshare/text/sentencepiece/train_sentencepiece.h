// Trains a SentencePiece model.
#pragma once

#include <cstdint>
#include <string>

#include "headshare/text/interface/next_chunk.h"

namespace headshare {

enum class SentencePieceModel { kUnigram, kBpe };

struct SentencePieceTraining {
  SentencePieceModel model = SentencePieceModel::kUnigram;
  int64_t vocabulary_size = 8192;
  double character_coverage = 0.9995;  // 0.98 to 1: the part of the text's characters that must have pieces
};

// Every model trained here begins with pieces of these ids. Padding is 0, as most programs have it.
struct SentencePieceIds {
  static constexpr int32_t kPadding = 0;  // <pad>
  static constexpr int32_t kUnknown = 1;  // <unk>
  static constexpr int32_t kBegin = 2;    // <s>
  static constexpr int32_t kEnd = 3;      // </s>
};

// Returns the bytes of a model with at most so many pieces, by the library's trainer with its own settings but these:
// one thread, the ids above, and fewer pieces where the text does not give as many. The same text gives the same bytes.
//
// Every line is a sentence. A line of more than 4192 bytes is cut at spaces into several (the trainer would leave it
// out), and so are words without an end. Lines with U+2585, which the trainer keeps for itself, are left out. The text
// stands in memory; more than 2^31 - 1 bytes are an Error. Throws Error for a text without letters, digits or signs,
// for invalid UTF-8, and where the characters alone need more pieces.
std::string train_sentencepiece(const SentencePieceTraining& training, const NextChunk& next_chunk);

}  // namespace headshare
