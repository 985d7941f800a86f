// The readers of Hugging Face's tokenizer.json share these functions.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "headshare/text/added/added_token.h"
#include "headshare/text/hf/hf_folder.h"

namespace headshare {

// Returns the member, or null where it is absent: Hugging Face reads both alike.
const nlohmann::json& optional_member(const nlohmann::json& object, const std::string& key);
bool optional_bool(const nlohmann::json& object, const std::string& key, bool otherwise, const std::string& where);

// Throws Error led by `where` when `unsupported`; it says that `what` ("normalizer") has this value.
void refuse(bool unsupported, const nlohmann::json& value, const std::string& what, const std::string& where);

// Says that a truncation and a padding are not read: they are the task's.
void note_lengths(const nlohmann::json& object, const std::string& where);

// Returns the part object[key] when its type is `type`; null where it is null or absent. Refuses other types.
const nlohmann::json& part_of_type(const nlohmann::json& object, const std::string& key, const std::string& type,
                                   const std::string& where);

// This id stands for an added token that a file names by its text alone: it gets that of the vocabulary, or the next
// one where the vocabulary has none.
constexpr int32_t kIdOfText = -1;

// Reads an entry of added_tokens, without its id.
AddedToken read_added_token(const nlohmann::json& entry, bool special_otherwise, const std::string& where);

// Returns the ids of a {text: id} object; none where it is no object.
std::map<std::string, int32_t> ids_in_vocabulary(const nlohmann::json& vocabulary, const std::string& where);
std::vector<std::pair<int32_t, std::string>> ids_and_texts(const std::vector<AddedToken>& added);

// Returns the added tokens of a tokenizer.json and what stands beside it, by id; `vocabulary` is the model's.
std::vector<AddedToken> added_tokens(const nlohmann::json& object, const TokensBeside& beside,
                                     const std::map<std::string, int32_t>& vocabulary, const std::string& where);

// Returns `added` and those of `beside` that are not among them, by id; `added` have the options of `beside` where it
// decides. Throws Error for an id that stands twice, or that the vocabulary has otherwise.
std::vector<AddedToken> with_tokens_beside(std::vector<AddedToken> added, const TokensBeside& beside,
                                           const std::map<std::string, int32_t>& vocabulary, const std::string& where);

// Appends what the vocabulary lacks. Throws Error where that leaves a hole, or an id has another text.
void append_added(const std::vector<AddedToken>& added, std::vector<std::string>* tokens, const std::string& where);

// Returns the list of added tokens: `special` ids without options of their own, and `added`.
nlohmann::json added_tokens_json(const std::vector<AddedToken>& added, const std::vector<int32_t>& special,
                                 const std::vector<std::string>& tokens);
nlohmann::json added_token_json(const AddedToken& token);

// Returns the merges of a BPE, as pairs of texts: "a b" or ["a", "b"] in the file.
std::vector<std::pair<std::string, std::string>> hf_merges(const nlohmann::json& model, const std::string& where);

// Returns how many of the tokens are the model's own: behind them stand added tokens that are `special` and have no
// role.
size_t model_tokens(const std::vector<AddedToken>& added, const std::vector<int32_t>& special, size_t tokens,
                    bool (*has_role)(std::string_view));

// An outline is what a TemplateProcessing puts around a text and a pair: "[CLS]:0 A:0 [SEP]:0", "[CLS]:0 A:0 [SEP]:0
// B:1 [SEP]:1".
using TemplateOutline = std::pair<std::string, std::string>;
TemplateOutline template_outline(const nlohmann::json& part, const std::string& where);
bool adds_nothing(const TemplateOutline& form);
// Returns the TemplateProcessing of an outline with these special tokens.
nlohmann::json template_json(const TemplateOutline& form, const std::vector<std::pair<std::string, int32_t>>& tokens);
inline const TemplateOutline kBertTemplate = {"[CLS]:0 A:0 [SEP]:0", "[CLS]:0 A:0 [SEP]:0 B:1 [SEP]:1"};
inline const TemplateOutline kModernBertTemplate = {"[CLS]:0 A:0 [SEP]:0", "[CLS]:0 A:0 [SEP]:0 B:0 [SEP]:0"};
inline const TemplateOutline kEmptyTemplate = {"A:0", "A:0 B:1"};  // adds nothing
inline const TemplateOutline kRobertaTemplate = {"<s>:0 A:0 </s>:0", "<s>:0 A:0 </s>:0 </s>:0 B:0 </s>:0"};

}  // namespace headshare
