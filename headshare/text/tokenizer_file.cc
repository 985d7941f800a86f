#include "headshare/text/tokenizer_file.h"

#include <cstdio>

#include "headshare/base/error.h"
#include "headshare/base/files/damaged_file.h"
#include "headshare/base/files/file.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/notice.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/rng.h"
#include "headshare/text/bpe/bpe_file.h"
#include "headshare/text/bpe/bpe_tokenizer.h"
#include "headshare/text/bpe/character_bpe.h"
#include "headshare/text/hash/hash_tokenizer.h"
#include "headshare/text/hf/hf_class_options.h"
#include "headshare/text/hf/hf_parts.h"
#include "headshare/text/hf/hf_tokenizer.h"
#include "headshare/text/hf/hf_tokenizer_config.h"
#include "headshare/text/interface/for_kinds.h"
#include "headshare/text/sentencepiece/sentencepiece_tokenizer.h"
#include "headshare/text/simple/byte_tokenizer.h"
#include "headshare/text/simple/character_tokenizer.h"
#include "headshare/text/simple/word_tokenizer.h"
#include "headshare/text/text_borders.h"
#include "headshare/text/wordpiece/wordpiece_file.h"

namespace headshare {
namespace {

// Several times the largest published vocabulary; bounds the memory a hostile file can ask for.
constexpr uint64_t kLargestFile = 64 << 20;

// A kind of tokenizer and how it is read from a tokenizer.json of ours.
struct TokenizerReader {
  const char* kind;
  std::unique_ptr<Tokenizer> (*read)(const nlohmann::json& object, const std::string& where);
};

template <class Kind>
std::unique_ptr<Tokenizer> read_kind(const nlohmann::json& object, const std::string& where) {
  return Kind::from_json(object, where);
}

const std::vector<TokenizerReader>& tokenizer_readers() {
  static const std::vector<TokenizerReader> readers = {{"bytes", read_kind<ByteTokenizer>},
                                                       {"characters", read_kind<CharacterTokenizer>},
                                                       {"words", read_kind<WordTokenizer>},
                                                       {"bpe", read_kind<BpeTokenizer>},
                                                       {"character-bpe", read_kind<CharacterBpeTokenizer>},
                                                       {"wordpiece", read_kind<WordPieceTokenizer>},
                                                       {"unigram", read_kind<UnigramTokenizer>},
                                                       {"sentencepiece", read_kind<SentencePieceTokenizer>},
                                                       {"hash-md", read_kind<HashTokenizer>},
                                                       {"hash-lsh", read_kind<HashTokenizer>}};
  return readers;
}

std::unique_ptr<Tokenizer> own_from_json(const nlohmann::json& object, const std::string& where) {
  const std::string& format = json_string(object, "format", where);
  HS_CHECK(format == kTokenizerFormat, where, ": the format is '", format, "', not '", kTokenizerFormat, "'");
  const int32_t version = json_id(object, "version", where);
  HS_CHECK(version >= kTokenizerVersion && version <= kNewestTokenizerVersion, where, ": format version ", version,
           ", this program reads versions ", kTokenizerVersion, " to ", kNewestTokenizerVersion,
           "; read it with the program that wrote it");
  const std::string& kind = json_string(object, "kind", where);
  std::vector<std::string> known;
  for (const TokenizerReader& reader : tokenizer_readers()) {
    if (reader.kind == kind) return reader.read(object, where);
    known.emplace_back(reader.kind);
  }
  throw Error(join_text(where, ": unknown tokenizer kind '", kind, "'", did_you_mean(kind, known)));
}

// Returns the first of `names` that is a file in `folder`; an empty path when there is none.
fs::path first_file(const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (fs::is_regular_file(folder / name)) return folder / name;
  }
  return {};
}

// Some models name the class of their tokenizer in config.json instead of tokenizer_config.json.
void check_model_config(const fs::path& config) {
  if (!fs::is_regular_file(config)) return;
  const nlohmann::json object = json_or_discarded(read_file(config, kLargestFile));
  if (object.is_object()) check_hf_tokenizer_class(object, config.string());  // whatever else it is, is not asked here
}

// Files that are no tokenizer.json do not say what stands around texts and for unknown words: the names do.
void check_names(const TokensBeside& beside, const std::map<std::string, std::string>& ours, const fs::path& file) {
  for (const auto& [key, text] : beside.names) {
    const auto own = ours.find(key);
    HS_CHECK(own == ours.end() || own->second == text, file.string(), ": the files beside it say that the ", key,
             " is ", brief_text(text), ", and headshare takes ", own->second, " for it; rename ", brief_text(text),
             " to ", own->second, " in all of them");
  }
}

// Reads a vocab.txt, with what a tokenizer_config.json beside it says about case.
std::unique_ptr<Tokenizer> load_vocabulary(const fs::path& path) {
  const HfTokenizerConfig config(path.parent_path());
  std::optional<BertNormalization> normalization;
  if (config.is_there()) normalization = normalization_from_hf_config(config.content(), config.file().string());
  if (config.tokenizer_class().empty()) check_model_config(path.parent_path() / "config.json");
  WordPieceDefinition definition =
      wordpiece_from_vocabulary(read_file(path, kLargestFile), normalization, path.string());
  const TokensBeside beside = tokens_beside(config);
  check_names(beside,
              {{"unk_token", "[UNK]"}, {"cls_token", "[CLS]"}, {"sep_token", "[SEP]"}, {"mask_token", "[MASK]"}}, path);
  add_tokens_beside(beside, path.string(), &definition);
  return std::make_unique<WordPieceTokenizer>(std::move(definition), path.string());
}

// Tells whether the files beside a vocab.json name a tokenizer of RoBERTa's kind or of GPT-2's; nothing where they name
// neither.
std::optional<bool> is_roberta(const HfTokenizerConfig& config) {
  std::string name = config.tokenizer_class();
  const fs::path model = config.folder() / "config.json";
  if (name.empty() && fs::is_regular_file(model)) {
    const nlohmann::json object = json_or_discarded(read_file(model, kLargestFile));
    for (const char* key : {"tokenizer_class", "model_type"}) {
      const nlohmann::json& value = optional_member(object, key);
      if (name.empty() && value.is_string()) name = value.get<std::string>();
    }
  }
  if (name.starts_with("GPT2") || name == "gpt2") return false;
  if (name.starts_with("Roberta") || name.starts_with("Bart") || name == "roberta" || name == "bart") return true;
  return std::nullopt;
}

// Reads GPT-2's pair of files, as transformers does with a tokenizer_config.json beside it.
std::unique_ptr<Tokenizer> load_pair(const fs::path& vocabulary, const fs::path& merges) {
  const HfTokenizerConfig config(vocabulary.parent_path());
  const nlohmann::json object = read_json_input(vocabulary, kLargestFile);
  const std::string text = read_file(merges, kLargestFile);
  const TokensBeside beside = tokens_beside(config);
  auto tokenizer = std::make_unique<BpeTokenizer>(bpe_from_gpt2_files({.vocabulary = object,
                                                                       .merges = text,
                                                                       .vocabulary_name = vocabulary.string(),
                                                                       .merges_name = merges.string(),
                                                                       .add_prefix_space = config.adds_prefix_space(),
                                                                       .roberta = is_roberta(config)},
                                                                      beside));
  if (tokenizer->special(SpecialToken::kClassify)) {
    check_names(beside, {{"cls_token", "<s>"}, {"sep_token", "</s>"}, {"mask_token", "<mask>"}}, vocabulary);
  }
  return tokenizer;
}

std::unique_ptr<Tokenizer> load_json(const fs::path& path) {
  nlohmann::json object = read_json_input(path, kLargestFile);
  const bool ours = object.is_object() && object.contains("format");
  if (ours) return tokenizer_from_json(object, path.string());
  const HfTokenizerConfig config(path.parent_path());
  apply_class_options(config, &object);
  std::unique_ptr<Tokenizer> tokenizer = tokenizer_from_json(object, path.string(), tokens_beside(config));
  // The template has the language that the file was written for; the configuration is where users name another.
  const std::string language = config.source_language();
  if (language.empty() || !language_of(*tokenizer)) return tokenizer;
  return in_language(*tokenizer, language, config.file().string() + ": src_lang");
}

constexpr const char* kMakeTokenizerJson =
    "make a tokenizer.json with transformers: AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)";

// Reads a model whose ids are those of its pieces. Tokens that other files add must be among them.
std::unique_ptr<Tokenizer> load_pieces(const fs::path& path) {
  std::unique_ptr<Tokenizer> tokenizer = load_sentencepiece(path);
  const TokensBeside beside = tokens_beside(HfTokenizerConfig(path.parent_path()));
  std::map<std::string, int32_t> ids;
  for (int32_t id = 0; id < tokenizer->vocabulary_size(); ++id) ids.emplace(tokenizer->spelling(id), id);
  for (const AddedToken& token : beside.tokens) {
    const auto found = ids.find(token.text);
    const bool known = found != ids.end() && (token.id == kIdOfText || token.id == found->second);
    HS_CHECK(known, path.string(), ": the files beside it add the token ", brief_text(token.text),
             ", which is no piece of the model; ", kMakeTokenizerJson);
  }
  if (beside.adds_begin.value_or(false)) {
    notice(join_text(path.string(),
                     ": transformers puts the bos_token before every text, and headshare does not with a ",
                     "SentencePiece model; for its perplexities ", kMakeTokenizerJson));
  }
  return tokenizer;
}

// The files of a tokenizer in a folder; those that are missing are empty.
struct TokenizerFiles {
  fs::path whole;               // tokenizer.json
  fs::path lines;               // BERT's vocab.txt
  fs::path vocabulary, merges;  // GPT-2's pair
  fs::path pieces;              // SentencePiece's tokenizer.model of Llama 2, Mistral, Gemma
};

TokenizerFiles tokenizer_files(const fs::path& folder) {
  return {.whole = first_file(folder, {"tokenizer.json"}),
          .lines = first_file(folder, {"vocab.txt"}),
          .vocabulary = first_file(folder, {"vocab.json", "encoder.json"}),
          .merges = first_file(folder, {"merges.txt", "vocab.bpe"}),
          .pieces = first_file(folder, {"tokenizer.model"})};
}

std::unique_ptr<Tokenizer> load_folder(const fs::path& folder) {
  const TokenizerFiles files = tokenizer_files(folder);
  if (!files.whole.empty()) return load_json(files.whole);
  if (!files.lines.empty()) return load_vocabulary(files.lines);
  const std::string advice = sentencepiece_advice(folder);
  HS_CHECK(advice.empty(), advice);
  const bool has_pair = !files.vocabulary.empty() && !files.merges.empty();
  if (!has_pair && !files.pieces.empty()) return load_pieces(files.pieces);
  HS_CHECK(!files.vocabulary.empty() && !files.merges.empty(), folder.string(), " holds no tokenizer: it has ",
           files.vocabulary.empty() ? "neither vocab.json nor encoder.json" : "no merges.txt or vocab.bpe",
           "; wanted is a tokenizer.json, GPT-2's vocab.json and merges.txt, a vocab.txt, or a tokenizer.model");
  return load_pair(files.vocabulary, files.merges);
}

}  // namespace

fs::path tokenizer_in(const fs::path& folder) {
  // Caches of models are folders of links, which may lead nowhere.
  const fs::path whole = folder / "tokenizer.json";
  HS_CHECK(!fs::exists(fs::symlink_status(whole)) || fs::is_regular_file(whole), whole.string(), " is ",
           fs::is_symlink(whole) ? "a link that leads to no file" : "no file",
           "; put the tokenizer there, or take it away to go on without");
  const TokenizerFiles files = tokenizer_files(folder);
  if (!files.whole.empty()) return files.whole;
  const bool pair = !files.vocabulary.empty() && !files.merges.empty();
  return pair || !files.lines.empty() || !files.pieces.empty() ? folder : fs::path();
}

std::string sentencepiece_advice(const fs::path& folder) {
  const fs::path pieces = first_file(folder, {"spiece.model", "sentencepiece.bpe.model", "sentencepiece.model"});
  if (pieces.empty()) return "";
  return join_text(folder.string(), " has its tokenizer in ", pieces.filename().string(),
                   ", which alone does not say how its model numbers tokens; ", kMakeTokenizerJson);
}

std::unique_ptr<Tokenizer> load_tokenizer(const fs::path& path) {
  try {
    if (fs::is_directory(path)) return load_folder(path);
    if (path.extension() == ".txt") return load_vocabulary(path);
    if (is_sentencepiece_name(path)) return load_sentencepiece(path);
    return load_json(path);
  } catch (const Error& error) {
    if (!path_exists(path)) throw;
    throw DamagedFile(error.what());
  }
}

namespace {

// Tells whether a tokenizer.json of Hugging Face has BPE over characters: with byte_fallback, and a decoder other than
// that of bytes. (byte_fallback does nothing in byte-level BPE, which may have no decoder.)
bool is_character_bpe(const nlohmann::json& object) {
  const nlohmann::json& model = optional_member(object, "model");
  if (optional_member(model, "type") != "BPE" || optional_member(model, "byte_fallback") != true) return false;
  const nlohmann::json& decoder = optional_member(object, "decoder");
  return !decoder.is_null() && optional_member(decoder, "type") != "ByteLevel";
}

}  // namespace

std::unique_ptr<Tokenizer> tokenizer_from_json(const nlohmann::json& object, const std::string& where,
                                               const TokensBeside& beside) {
  HS_CHECK(object.is_object() && (object.contains("format") || object.contains("model")), where,
           ": not a tokenizer.json: ", brief_json(object),
           " with neither 'format' (headshare) nor 'model' (Hugging "
           "Face); to load GPT-2's vocab.json and merges.txt, give their folder");
  if (object.contains("format")) return own_from_json(object, where);
  const nlohmann::json& model = object["model"];
  if (model.is_object() && model.contains("type") && model["type"] == "Unigram") {
    return std::make_unique<UnigramTokenizer>(unigram_from_hf_json(object, where, beside), where);
  }
  if (model.is_object() && model.contains("type") && model["type"] == "WordPiece") {
    return std::make_unique<WordPieceTokenizer>(wordpiece_from_hf_json(object, where, beside), where);
  }
  if (is_character_bpe(object)) {
    return std::make_unique<CharacterBpeTokenizer>(character_bpe_from_hf_json(object, where, beside), where);
  }
  return std::make_unique<BpeTokenizer>(bpe_from_hf_json(object, where, beside), where);
}

std::string tokenizer_text(const Tokenizer& tokenizer) { return tokenizer.to_json().dump(1) + "\n"; }

void save_tokenizer(const Tokenizer& tokenizer, const fs::path& path) { write_file(path, tokenizer_text(tokenizer)); }

std::string fingerprint(const Tokenizer& tokenizer) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(stream_key(0, tokenizer.to_json().dump())));
  return digits;
}

std::string tokenizer_label(const Tokenizer& tokenizer) {
  constexpr size_t kDigits = 8;
  return tokenizer.kind() + "-" + fingerprint(tokenizer).substr(0, kDigits);
}

}  // namespace headshare
