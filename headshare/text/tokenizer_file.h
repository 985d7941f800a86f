// Tokenizers are read from and written to files: our own tokenizer.json, Hugging Face's, GPT-2's pair of files, BERT's
// vocab.txt.
#pragma once

#include "headshare/text/hf/hf_folder.h"
#include "headshare/text/interface/tokenizer.h"

namespace headshare {

// Reads a tokenizer from
//  - a tokenizer.json: ours, or a Hugging Face one with a BPE over bytes or characters, a WordPiece or a Unigram
//    (hf_tokenizer.h says what is accepted; anything else is refused by name),
//  - a vocab.txt (any name that ends in .txt), with a tokenizer_config.json beside it or alone
//    (wordpiece_file.h),
//  - a SentencePiece model, a file whose name ends in .model or .spm,
//  - a folder with a tokenizer.json, or else a vocab.txt,
//  - a folder with GPT-2's vocab.json or encoder.json, and merges.txt or vocab.bpe,
//  - a folder with SentencePiece's tokenizer.model, as Llama 2 and Gemma have it, beside which no other tokens are
//    added.
// With Hugging Face's files, what other files of the folder say of added tokens and languages is read too
// (hf_folder.h). The files are untrusted: whatever they hold, the result is a consistent tokenizer or an Error naming
// the file and what is wrong (a DamagedFile, unless there is none at `path`).
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path);

// Names what load_tokenizer() is asked to read for the tokenizer of a folder: its tokenizer.json, or the folder itself.
// Empty where it has none of the files above.
std::filesystem::path tokenizer_in(const std::filesystem::path& folder);

// Says what to do about a folder whose tokenizer is a SentencePiece model, beginning with the folder; "" for other
// folders. load_tokenizer refuses them: most such programs (ALBERT, XLM-RoBERTa) change texts before the model, or its
// ids.
std::string sentencepiece_advice(const std::filesystem::path& folder);

// Does what load_tokenizer() does, from a parsed tokenizer.json, ours or Hugging Face's; `where` leads the messages.
// `beside` has added tokens that other files of its folder list (hf_folder.h).
std::unique_ptr<Tokenizer> tokenizer_from_json(const nlohmann::json& object, const std::string& where,
                                               const TokensBeside& beside = {});

// Returns what a tokenizer.json of ours holds.
std::string tokenizer_text(const Tokenizer& tokenizer);

// Writes it under `path`, atomically.
void save_tokenizer(const Tokenizer& tokenizer, const std::filesystem::path& path);

// Returns 16 hexadecimal digits from the whole of to_json(): equal tokenizers have equal fingerprints. They are good
// for naming caches; they are no cryptographic hash.
std::string fingerprint(const Tokenizer& tokenizer);

// Returns kind and the head of the fingerprint, as signatures name a tokenizer: "bpe-1f3a09cc".
std::string tokenizer_label(const Tokenizer& tokenizer);

}  // namespace headshare
