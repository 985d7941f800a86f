// Models of other programs, read as ours. A format says which of its tensors become which of ours;
// filling a model from that, and listing it, is the same for all formats.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headshare/base/file.h"
#include "headshare/models/checkpoint.h"
#include "headshare/models/finite.h"

namespace headshare {

// One of our tensors and where its values come from.
struct MappedTensor {
  std::string source;            // the foreign name
  std::string taken;             // what is done on the way: "transposed", "columns 0..767, transposed"; "" for a copy
  std::string target;            // our name
  std::function<Tensor()> read;  // the values in float32, in our shape
};

// The tokenizers of MarianMT: a SentencePiece model for each side, and the ids of their pieces.
struct PieceFiles {
  fs::path source, target;                        // .spm
  fs::path source_vocabulary, target_vocabulary;  // vocab.json; one file where the sides share it
};

// A foreign model whose configuration and tensor names, types and shapes have been checked, but
// whose values have not been read.
struct ForeignModel {
  ModelOptions options;  // resolved
  std::vector<MappedTensor> tensors = {};
  std::vector<std::string> unused = {};   // foreign tensors that say nothing new: causal masks, a tied output layer
  std::vector<std::string> notes = {};    // sentences: what differs from the source in training
  fs::path tokenizer = {};                // for load_tokenizer; empty when the source has none
  std::optional<PieceFiles> pieces = {};  // where each side has a SentencePiece model of its own
  std::string tokenizer_advice = {};      // a sentence: what text needs where `tokenizer` is empty; "": nothing special
};

// What to read, and what the user says of it.
struct ForeignSource {
  ForeignSource(fs::path source_path, bool hashes = false)  // NOLINT(google-explicit-constructor)
      : path(std::move(source_path)), hashes_words(hashes) {}

  fs::path path;
  bool hashes_words;  // ids are hashes of words (HashFormers), which a configuration does not always tell
};

struct ForeignFormat {
  std::string name;  // for --from
  std::string help;
  // Throws Error, naming the file and the way out, for whatever is damaged or has no place in ours.
  std::function<ForeignModel(const ForeignSource&)> open;
};

const std::vector<ForeignFormat>& foreign_formats();

// The format of that name; an unknown one is refused with the nearest.
const ForeignFormat& find_format(const std::string& name);

// The model with all its values, in evaluation mode; `foreign.options` are of its kind. Memory that will not fit is
// refused first.
Decoder read_decoder(const ForeignModel& foreign);
Encoder read_encoder(const ForeignModel& foreign);
EncoderDecoder read_encoder_decoder(const ForeignModel& foreign);

}  // namespace headshare
