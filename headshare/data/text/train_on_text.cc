#include "headshare/data/text/train_on_text.h"

#include "headshare/base/error.h"
#include "headshare/data/text/text_source.h"

namespace headshare {

std::unique_ptr<Tokenizer> train_on_text(const TokenizerOptions& options, const DataOptions& data,
                                         const Progress& progress, TextIsFor use) {
  HS_CHECK(!data.text.empty(),
           "there is no text to learn from: give --text FILE (diagnostic tasks, such as `compare --task offsets`, need "
           "none)");
  TextSource source({.inputs = data.text,
                     .jsonl_field = data.jsonl_field,
                     .invalid_utf8 = data.invalid_utf8,
                     .allow_binary = data.allow_binary});
  HS_CHECK(use == TextIsFor::kTokenizer || source.rereadable(),
           "a text that can be read only once cannot train a tokenizer and then a model; write it to a file, or give a "
           "trained tokenizer with --tokenizer-path");
  return train_tokenizer(options, [&](std::string* chunk) {
    const std::optional<TextPiece> piece = source.next();
    if (progress) {
      progress({.stage = "training a tokenizer", .done = source.bytes_done(), .total = source.bytes_total()});
    }
    if (piece) chunk->assign(piece->text);
    return piece.has_value();
  });
}

}  // namespace headshare
