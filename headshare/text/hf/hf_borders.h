// Reads what the post_processor of a BPE in Hugging Face's tokenizer.json puts around a text, and the tokens with roles
// that follow from it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "headshare/text/bpe/begin_of_pair.h"
#include "headshare/text/hf/hf_folder.h"

namespace headshare {

struct BpeBorders {
  enum class Form {
    kNone,     // the file does not say: no template
    kNothing,  // nothing around a text of a decoder
    kRoberta,  // <s> A </s> </s> B </s>
    kBert,     // [CLS] A [SEP] B [SEP]; it is written back in one segment, as ModernBERT has it
    kBegin,    // a token before every text: Llama's <s>
  };
  Form form = Form::kNone;
  std::string begin = {};  // of kBegin
  BeginOfPair begin_of_pair = BeginOfPair::kAgain;
};

// Accepts null, ByteLevel, RobertaProcessing, the templates above, one that adds nothing, and sequences of ByteLevel
// and one of these. add_bos_token of tokenizer_config.json overrides the template. Throws Error led by `where` for
// others.
BpeBorders read_bpe_borders(const nlohmann::json& object, const TokensBeside& beside, const std::string& where);

// Returns the token that ends a text beside such borders: eos_token of tokenizer_config.json, else the usual partner of
// the one that begins it ("</s>" of "<s>"); nothing where neither is among `tokens`.
std::optional<int32_t> end_of_text_beside(const BpeBorders& borders, const TokensBeside& beside,
                                          const std::vector<std::string>& tokens);

// Returns where a text stands in the list; throws Error led by `where` when it does not.
int32_t id_of_border(const std::vector<std::string>& tokens, const std::string& text, const std::string& where);

// Returns the template with a token before every text.
nlohmann::json begin_template(const std::string& text, int32_t id, BeginOfPair form = BeginOfPair::kAgain);

}  // namespace headshare
