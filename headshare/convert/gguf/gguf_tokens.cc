#include "headshare/convert/gguf/gguf_tokens.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/notice.h"
#include "headshare/convert/foreign/byte_spellings.h"
#include "headshare/convert/gguf/merge_scores.h"
#include "headshare/text/bpe/bpe_tokenizer.h"
#include "headshare/text/bpe/character_bpe.h"
#include "headshare/text/text_borders.h"

namespace headshare {
namespace {

// llama.cpp's kinds of tokens.
constexpr int32_t kGgufNormal = 1, kGgufUnknown = 2, kGgufControl = 3, kGgufUserDefined = 4, kGgufUnused = 5,
                  kGgufByte = 6;

int32_t gguf_kind(TokenKind kind) {
  switch (kind) {
    case TokenKind::kUnknown:
      return kGgufUnknown;
    case TokenKind::kSpecial:
      return kGgufControl;
    case TokenKind::kAdded:
      return kGgufUserDefined;
    case TokenKind::kUnused:
      return kGgufUnused;
    case TokenKind::kByte:
      return kGgufByte;
    default:
      return kGgufNormal;
  }
}

// Returns llama.cpp's name for the rule by which text is cut into words.
const char* gguf_rule(SplitRule rule) {
  switch (rule) {
    case SplitRule::kGpt2:
      return "gpt-2";
    case SplitRule::kDigits:
      return "starcoder";
    case SplitRule::kLlama3:
      return "llama-bpe";
    case SplitRule::kQwen2:
      return "qwen2";
    case SplitRule::kTekken:
      return "tekken";
    case SplitRule::kGpt4o:
      return "gpt-4o";
    case SplitRule::kNone:
      break;
  }
  throw Error(join_text("the tokenizer does not cut text into words, and readers of GGUF do", kWithoutTokenizer));
}

// Tells whether merges make every token of the word that it is, so that it is one whether words stay whole or not.
bool merges_make_all(const BpeDefinition& definition) {
  const BpeMerger merger(definition, "the tokenizer");
  BpeMerger::Scratch scratch;
  std::vector<int32_t> made;
  for (size_t id = 0; id < definition.tokens.size(); ++id) {
    const auto number = static_cast<int32_t>(id);
    if (std::binary_search(definition.special.begin(), definition.special.end(), number)) continue;
    made.clear();
    merger.merge(definition.tokens[id], &scratch, &made);
    if (made != std::vector<int32_t>{number}) return false;
  }
  return true;
}

// Returns the rule's name. Throws Error where llama.cpp would give other tokens.
std::string checked_rule(const BpeTokenizer& tokenizer) {
  const BpeDefinition& definition = tokenizer.definition();
  const char* rule = gguf_rule(definition.split);
  HS_CHECK(!definition.add_prefix_space, "the tokenizer puts a space before every text, and readers of GGUF do not",
           kWithoutTokenizer);
  const bool keeps_words = definition.split == SplitRule::kLlama3 || definition.split == SplitRule::kTekken;
  HS_CHECK(keeps_words == definition.whole_words || merges_make_all(definition), "the tokenizer ",
           definition.whole_words ? "keeps" : "does not keep",
           " words whole that are tokens (ignore_merges), and readers of GGUF do otherwise with the rule '", rule, "'",
           kWithoutTokenizer);
  if (definition.composes) {
    notice("the tokenizer normalises text to NFC, and readers of GGUF do not: give them text in NFC");
  }
  return rule;
}

void add_token(const std::string& key, GgufValue value, GgufFile* file) {
  file->values.emplace_back("tokenizer.ggml." + key, std::move(value));
}

void add_kinds(const Vocabulary& vocabulary, size_t count, GgufFile* file) {
  std::vector<int32_t> kinds(count, kGgufUnused);
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) kinds[id] = gguf_kind(vocabulary.tokens[id].kind);
  add_token("token_type", kinds, file);
}

void add_byte_level(const ModelToWrite& model, GgufFile* file) {
  const Tokenizer& tokenizer = *model.tokenizers.target;
  const Vocabulary vocabulary = byte_level_vocabulary(tokenizer, "GGUF");
  const std::vector<std::string> spellings = byte_spellings(model, "GGUF", "[PAD", "]");
  std::vector<std::string> merges;
  for (const TokenMerge& merge : vocabulary.merges) {
    merges.push_back(spellings.at(static_cast<size_t>(merge.left)) + " " +
                     spellings.at(static_cast<size_t>(merge.right)));
  }
  const auto* bpe = dynamic_cast<const BpeTokenizer*>(&tokenizer);
  add_token("model", std::string("gpt2"), file);
  add_token("pre", bpe != nullptr ? checked_rule(*bpe) : gguf_rule(SplitRule::kGpt2), file);
  add_token("tokens", spellings, file);
  add_kinds(vocabulary, spellings.size(), file);
  add_token("merges", merges, file);
}

// llama.cpp puts a space before every stretch between two added tokens, or before none. It looks for added tokens in
// the text as it is, and takes ids 0 to 2 for special tokens that a file does not name.
void check_character_rules(const CharacterBpeTokenizer& tokenizer) {
  const CharacterBpeDefinition& d = tokenizer.definition();
  HS_CHECK(d.space_before == SpaceBefore::kNever || d.space_before == SpaceBefore::kEvenSpace,
           "the tokenizer puts a space before a text only where it does not begin with one (Metaspace), and readers of "
           "GGUF put one there as well",
           kWithoutTokenizer);
  for (const AddedToken& one : d.added) {
    HS_CHECK(one.special || !one.has_options(), "the added token ", brief_json(one.text),
             " is looked for with options (normalized, lstrip, rstrip or single_word), and readers of GGUF have none",
             kWithoutTokenizer);
  }
  HS_CHECK(d.end_of_text, "the tokenizer has no token that ends texts, and readers of GGUF take another for it",
           kWithoutTokenizer);
}

void add_characters(const ModelToWrite& model, const CharacterBpeTokenizer& tokenizer, GgufFile* file) {
  check_character_rules(tokenizer);
  const std::vector<std::string> spellings = byte_spellings(model, "GGUF", "[PAD", "]");
  add_token("model", std::string("llama"), file);
  add_token("tokens", spellings, file);
  add_token("scores", merge_scores(tokenizer.definition(), spellings), file);
  add_kinds(*tokenizer.vocabulary(), spellings.size(), file);
  add_token("add_space_prefix", tokenizer.definition().space_before == SpaceBefore::kEvenSpace, file);
  if (const auto unknown = tokenizer.special(SpecialToken::kUnknown)) {
    add_token("unknown_token_id", static_cast<uint32_t>(*unknown), file);
  }
}

}  // namespace

void add_gguf_tokens(const ModelToWrite& model, GgufFile* file) {
  const auto add = [file](const std::string& key, GgufValue value) { add_token(key, std::move(value), file); };
  const Tokenizer* tokenizer = model.tokenizers.target.get();
  if (tokenizer == nullptr) return add("model", std::string("none"));
  const auto* characters = dynamic_cast<const CharacterBpeTokenizer*>(tokenizer);
  characters != nullptr ? add_characters(model, *characters, file) : add_byte_level(model, file);
  const std::optional<int32_t> begin = begins_texts(*tokenizer);
  const std::optional<int32_t> end = tokenizer->special(SpecialToken::kEndOfText);
  add("add_bos_token", begin.has_value());
  if (end) add("eos_token_id", static_cast<uint32_t>(*end));
  if (begin || end) add("bos_token_id", static_cast<uint32_t>(begin ? *begin : *end));
}

}  // namespace headshare
