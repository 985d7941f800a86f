#include "headshare/text/sentencepiece/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <cctype>

#include "headshare/base/error.h"
#include "headshare/base/files/file.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/strings/base64.h"
#include "headshare/text/hf/hf_folder.h"
#include "headshare/text/interface/for_kinds.h"
#include "headshare/text/sentencepiece/model_check.h"
#include "headshare/text/unicode/metaspace.h"
#include "headshare/text/unicode/utf8.h"
#include "headshare/text/unigram/charsmap.h"
#include "headshare/text/unigram/unigram_tokenizer.h"

namespace headshare {
namespace {

constexpr size_t kLongestText = size_t{64} << 20;  // the library takes up to 100 bytes of memory for each
constexpr uint64_t kLargestVocabulary = 64 << 20;
constexpr std::string_view kPadding = "<pad>", kUnknown = "<unk>", kBegin = "<s>", kEnd = "</s>";

void check(const sentencepiece::util::Status& status, const std::string& what) {
  HS_CHECK(status.ok(), what, ": ", status.message());
}

void check_text(std::string_view text) {
  check_utf8(text, "tokenizer 'sentencepiece'");
  HS_CHECK(text.size() <= kLongestText, "tokenizer 'sentencepiece': a text of ", text.size(), " bytes; at most ",
           kLongestText, " are cut at once; break it into lines");
}

// Returns how many bytes the language code has that a text begins with, ">>fra<<"; 0 where it begins with none.
size_t language_code_bytes(std::string_view text) {
  constexpr std::string_view kOpens = ">>", kCloses = "<<";
  if (!text.starts_with(kOpens)) return 0;
  const size_t end = text.find(kCloses);
  return end == std::string_view::npos ? 0 : end + kCloses.size();
}

// Refuses added tokens: transformers would find them in texts, and give those that the vocabulary lacks the next ids.
void refuse_added_tokens(const fs::path& folder) {
  for (const AddedToken& token : tokens_beside(HfTokenizerConfig(folder)).tokens) {
    const std::string_view text = token.text;
    const bool control = text == kPadding || text == kUnknown || text == kBegin || text == kEnd;
    const bool code = language_code_bytes(text) == text.size();
    HS_CHECK(control, folder.string(), ": its tokenizer has the added token ", brief_text(token.text),
             ", and headshare finds none in texts for SentencePiece models",
             code ? ", but language codes at their beginning, which no file has to list" : "",
             "; remove it from added_tokens.json, special_tokens_map.json and tokenizer_config.json if your texts do "
             "not have it",
             code ? " elsewhere" : "");
  }
}

using Encoded = sentencepiece::ImmutableSentencePieceText;

Encoded encoded(const sentencepiece::SentencePieceProcessor& processor, std::string_view text) {
  check_text(text);
  Encoded pieces;
  check(processor.Encode(text, pieces.mutable_proto()), "tokenizer 'sentencepiece'");
  return pieces;
}

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(std::string model, const std::string& where) : model_(std::move(model)) {
  load(where);
}

SentencePieceTokenizer::SentencePieceTokenizer(std::string model, std::vector<std::string> vocabulary,
                                               const std::string& where)
    : model_(std::move(model)), vocabulary_(std::move(vocabulary)) {
  load(where);
  read_vocabulary(where);
}

SentencePieceTokenizer::~SentencePieceTokenizer() = default;

void SentencePieceTokenizer::load(const std::string& where) {
  const std::string checked = checked_sentencepiece_model(model_, where);
  processor_ = std::make_unique<sentencepiece::SentencePieceProcessor>();
  try {
    check(processor_->LoadFromSerializedProto(checked), where + ": no SentencePiece model");
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // of its double-array trie
    throw Error(join_text(where, ": SentencePiece cannot use this model: ", error.what()));
  }
}

void SentencePieceTokenizer::read_vocabulary(const std::string& where) {
  for (const std::string& token : vocabulary_) {
    const auto id = static_cast<int32_t>(ids_.size());
    HS_CHECK(!token.empty(), where, ": the vocabulary's token ", id, " is empty");
    HS_CHECK(ids_.emplace(token, id).second, where, ": the vocabulary has ", brief_text(token), " twice");
  }
  HS_CHECK(ids_.contains(kUnknown), where, ": the vocabulary has no ", kUnknown, ", which pieces that it lacks become");
}

int64_t SentencePieceTokenizer::vocabulary_size() const {
  return has_vocabulary() ? static_cast<int64_t>(vocabulary_.size()) : processor_->GetPieceSize();
}

const std::string& SentencePieceTokenizer::piece(int32_t id) const {
  return has_vocabulary() ? vocabulary_[static_cast<size_t>(id)] : processor_->IdToPiece(id);
}

bool SentencePieceTokenizer::is_control(int32_t id) const {
  if (!has_vocabulary()) return processor_->IsControl(id);
  const std::string& text = piece(id);
  return text == kPadding || text == kBegin || text == kEnd || processor_->IsControl(processor_->PieceToId(text));
}

bool SentencePieceTokenizer::is_unknown(int32_t id) const {
  return has_vocabulary() ? piece(id) == kUnknown : processor_->IsUnknown(id);
}

std::vector<int32_t> SentencePieceTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  if (!has_vocabulary()) {
    check_text(text);
    check(processor_->Encode(text, &ids), "tokenizer 'sentencepiece'");
    return ids;
  }
  return encode_with_spans(text).ids;
}

TokensWithSpans SentencePieceTokenizer::encode_with_spans(std::string_view text) const {
  const size_t code = has_vocabulary() ? language_code_bytes(text) : 0;
  if (code == 0) return encode_pieces(text);
  check_text(text);
  TokensWithSpans result = encode_pieces(text.substr(code));
  for (TextSpan& span : result.spans) span = {span.begin + code, span.end + code};
  const auto known = ids_.find(text.substr(0, code));
  result.ids.insert(result.ids.begin(), known != ids_.end() ? known->second : ids_.at(kUnknown));
  result.spans.insert(result.spans.begin(), {0, code});
  return result;
}

TokensWithSpans SentencePieceTokenizer::encode_pieces(std::string_view text) const {
  const Encoded found = encoded(*processor_, text);
  const size_t count = found.pieces_size();
  TokensWithSpans result;
  result.ids.resize(count);
  result.spans.resize(count);
  const int32_t unknown = has_vocabulary() ? ids_.at(kUnknown) : 0;
  for (size_t i = count; i > 0; --i) {
    const auto one = found.pieces(static_cast<int>(i - 1));
    TextSpan span = {one.begin(), one.end()};
    // The last byte of a character alone has its span.
    if (i < count && span.begin == span.end && processor_->IsByte(static_cast<int>(one.id())) &&
        result.spans[i].begin == span.begin) {
      span.end = result.spans[i].end;
    }
    result.spans[i - 1] = span;
    result.ids[i - 1] = static_cast<int32_t>(one.id());
    if (!has_vocabulary()) continue;
    // The id goes by the piece's text: a vocabulary shared by two models may have a token for what is unknown to this
    // one.
    const auto token = ids_.find(one.piece());
    result.ids[i - 1] = token != ids_.end() ? token->second : unknown;
  }
  return result;
}

std::string SentencePieceTokenizer::decode_run(std::span<const int32_t> ids) const {
  std::string text;
  if (!has_vocabulary()) {
    check(processor_->Decode(std::vector<int>(ids.begin(), ids.end()), &text), "tokenizer 'sentencepiece'");
    return text;
  }
  std::vector<std::string> pieces;
  pieces.reserve(ids.size());
  for (const int32_t id : ids) pieces.push_back(piece(id));
  check(processor_->Decode(pieces, &text), "tokenizer 'sentencepiece'");
  // Pieces of the other model come out as they are.
  for (size_t at = text.find(kMetaspace); at != std::string::npos; at = text.find(kMetaspace, at)) {
    text.replace(at, kMetaspace.size(), at > 0 ? " " : "");
  }
  return text;
}

std::string SentencePieceTokenizer::spelling(int32_t id) const {
  check_token_id(id, vocabulary_size());
  return piece(id);
}

std::string SentencePieceTokenizer::decode(std::span<const int32_t> ids) const {
  for (const int32_t id : ids) check_token_id(id, vocabulary_size());
  std::string text;
  for (size_t begin = 0; begin < ids.size();) {
    size_t end = begin;
    while (end < ids.size() && !is_control(ids[end])) ++end;
    text += decode_run(ids.subspan(begin, end - begin));
    if (end < ids.size()) text += piece(ids[end]);
    begin = end + 1;
  }
  return text;
}

std::optional<int32_t> SentencePieceTokenizer::special(SpecialToken role) const {
  const auto found = [this](std::string_view text, int own) -> std::optional<int32_t> {
    if (!has_vocabulary()) return own >= 0 ? std::optional<int32_t>(own) : std::nullopt;
    const auto token = ids_.find(text);
    return token != ids_.end() ? std::optional(token->second) : std::nullopt;
  };
  switch (role) {
    case SpecialToken::kPadding:
      return found(kPadding, processor_->pad_id());
    case SpecialToken::kUnknown:
      return found(kUnknown, processor_->unk_id());
    case SpecialToken::kBeginOfText:
      return found(kBegin, processor_->bos_id());
    case SpecialToken::kEndOfText:
      return found(kEnd, processor_->eos_id());
    default:
      return std::nullopt;
  }
}

bool SentencePieceTokenizer::continues_word(int32_t id) const {
  check_token_id(id, vocabulary_size());
  if (is_control(id) || is_unknown(id)) return false;
  const std::string& text = piece(id);
  if (!has_vocabulary() && processor_->IsByte(id)) return true;
  const auto first = static_cast<unsigned char>(text[0]);
  return !text.starts_with(kMetaspace) && (first >= 0x80 || std::isalnum(first) != 0);
}

TokenKind SentencePieceTokenizer::token_kind(int32_t id) const {
  if (is_unknown(id)) return TokenKind::kUnknown;
  if (is_control(id)) return TokenKind::kSpecial;
  const int own = has_vocabulary() ? processor_->PieceToId(piece(id)) : id;
  if (processor_->IsByte(own)) return TokenKind::kByte;
  return processor_->IsUnused(own) ? TokenKind::kUnused : TokenKind::kOrdinary;
}

std::optional<Vocabulary> SentencePieceTokenizer::vocabulary() const {
  Vocabulary vocabulary;
  for (int32_t id = 0; id < vocabulary_size(); ++id) {
    vocabulary.tokens.push_back({.spelling = piece(id), .kind = token_kind(id)});
    // A vocabulary of two models has scores in either.
    if (!has_vocabulary()) vocabulary.scores.push_back(processor_->GetScore(id));
  }
  return vocabulary;
}

nlohmann::json SentencePieceTokenizer::to_json() const {
  nlohmann::json object = tokenizer_header(*this);
  object["model"] = to_base64(model_);
  if (has_vocabulary()) object["vocabulary"] = vocabulary_;
  return object;
}

std::unique_ptr<SentencePieceTokenizer> SentencePieceTokenizer::from_json(const nlohmann::json& object,
                                                                          const std::string& where) {
  refuse_unknown_keys(object, {"format", "version", "kind", "model", "vocabulary"}, where);
  std::string model = from_base64(json_string(object, "model", where), where + ": model");
  if (!object.contains("vocabulary")) return std::make_unique<SentencePieceTokenizer>(std::move(model), where);
  std::vector<std::string> vocabulary;
  for (const nlohmann::json& token : json_list(object, "vocabulary", where)) {
    vocabulary.push_back(json_string(token, join_text(where, ": vocabulary: token ", vocabulary.size())));
  }
  return std::make_unique<SentencePieceTokenizer>(std::move(model), std::move(vocabulary), where);
}

std::unique_ptr<SentencePieceTokenizer> load_sentencepiece(const fs::path& model) {
  return std::make_unique<SentencePieceTokenizer>(read_file(model, kLargestSentencePieceModel), model.string());
}

std::unique_ptr<SentencePieceTokenizer> load_sentencepiece(const fs::path& model, const fs::path& vocabulary) {
  const nlohmann::json object = read_json_input(vocabulary, kLargestVocabulary);
  const std::string where = vocabulary.string();
  HS_CHECK(object.is_object() && !object.empty(), where, ": a vocab.json maps pieces to ids; this is ",
           brief_json(object));
  std::vector<std::string> tokens(object.size());
  for (const auto& [token, value] : object.items()) {
    const int32_t id = json_id(value, join_text(where, ": the id of ", brief_text(token)));
    const auto place = static_cast<size_t>(id);
    HS_CHECK(place < tokens.size(), where, ": the id ", id, " of ", brief_text(token), " is too large: ", tokens.size(),
             " tokens have the ids 0 .. ", tokens.size() - 1);
    HS_CHECK(!token.empty(), where, ": the token with the id ", id, " is empty");
    HS_CHECK(tokens[place].empty(), where, ": ", brief_text(tokens[place]), " and ", brief_text(token),
             " have the same id, ", id);
    tokens[place] = token;
  }
  refuse_added_tokens(vocabulary.parent_path());
  return std::make_unique<SentencePieceTokenizer>(read_file(model, kLargestSentencePieceModel), std::move(tokens),
                                                  join_text(model.string(), " with ", where));
}

bool is_sentencepiece_name(const fs::path& path) { return path.extension() == ".model" || path.extension() == ".spm"; }

std::string sentencepiece_file(const Tokenizer& tokenizer, const fs::path& path) {
  const auto* pieces = dynamic_cast<const SentencePieceTokenizer*>(&tokenizer);
  HS_CHECK(pieces != nullptr, "the tokenizer '", tokenizer.kind(),
           "' is no SentencePiece model; only those of kind 'sentencepiece' can be written as one");
  HS_CHECK(!pieces->has_vocabulary(), path.string(),
           ": the tokenizer numbers pieces by a vocabulary of its own, which a SentencePiece model cannot hold");
  return pieces->model();
}

}  // namespace headshare
