// Models of other programs, read as ours. A format says which of its tensors become which of ours; filling a model from
// that, and listing it, is the same for all formats.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headshare/base/files/file.h"
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

// A foreign model whose configuration and tensor names, types and shapes have been checked, but
// whose values have not been read.
struct ForeignModel {
  ModelOptions options;  // resolved
  std::vector<MappedTensor> tensors = {};
  std::vector<std::string> unused = {};  // foreign tensors that say nothing new: causal masks, a tied output layer
  std::vector<std::string> notes = {};   // sentences: what differs from the source in training
  // Reads the source's tokenizers and checks that they are this model's; null where the source has none. Throws Error,
  // naming the way out, where its files do not say which tokenizer the model has.
  std::function<TokenizerPair()> tokenizers = {};
  std::string without_tokenizer = {};  // a sentence: what text needs where `tokenizers` is null
};

// A source says what to read, and what the user adds about it.
struct ForeignSource {
  ForeignSource(fs::path source_path,  // NOLINT(google-explicit-constructor)
                std::shared_ptr<Tokenizer> given = nullptr)
      : path(std::move(source_path)), tokenizer(std::move(given)) {}

  fs::path path;
  std::shared_ptr<Tokenizer> tokenizer;  // the one that the user names in place of the source's; may be null
};

// The tokenizer for both sides of a model, where the model has two. Throws Error, led by `where` (which names the
// tokenizer), unless it is one for this model; gives a notice where it has far fewer tokens than the model.
TokenizerPair one_tokenizer(std::shared_ptr<Tokenizer> tokenizer, const ModelOptions& model, const std::string& where);

// Reads the model with all its values, in evaluation mode. Memory that will not fit is refused first.
AnyModel read_model(const ForeignModel& foreign);

}  // namespace headshare
