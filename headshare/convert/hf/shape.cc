#include "headshare/convert/hf/shape.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/base/json_input.h"
#include "headshare/base/nearest.h"
#include "headshare/convert/hf/albert.h"
#include "headshare/convert/hf/bart.h"
#include "headshare/convert/hf/bert.h"
#include "headshare/convert/hf/distilbert.h"
#include "headshare/convert/hf/gpt2.h"
#include "headshare/convert/hf/llama.h"
#include "headshare/convert/hf/marian.h"
#include "headshare/convert/hf/roberta.h"

namespace headshare {
namespace {

std::string heads_of(const EncoderOptions& o) {
  std::vector<std::string> parts;
  if (o.pooler) parts.emplace_back("its pooler");
  if (o.masked_head) parts.emplace_back("its masked-LM head");
  if (o.three_way_head) parts.emplace_back("its three-way head");
  if (o.task_head.kind != TaskHeadKind::kNone) parts.emplace_back("the head of its task");
  return parts.empty() ? "no head" : list_text(parts);
}

// `plain`: the class without a head, which a configuration that names none is.
HfShape encoder_shape(const HfConfig& config, const std::string& type, const char* plain,
                      const EncoderOptions& options) {
  return {.options = options,
          .model_type = type,
          .notes = {join_text("the count of parameters includes the encoder and ", heads_of(options), " (",
                              config.architecture().value_or(plain), ")")}};
}

// As transformers counts: a bias of the output layer is no parameter there; sinusoids and unused positions are some.
HfShape encoder_decoder_shape(const std::string& type, const EncoderDecoderOptions& options) {
  HfShape shape{.options = options, .model_type = type};
  const bool fixed = options.positions == PositionKind::kSinusoidal;
  if (fixed) {
    shape.counts.fixed_tables = 2;
  } else {
    shape.counts.unused_rows = 2 * 2;  // of each side
  }
  // BART keeps `shared` beside the embeddings of both sides.
  const bool unread = !fixed && !options.tie_embeddings;
  if (unread) shape.counts.unused_rows += options.vocabulary;
  shape.notes.push_back(join_text("the count of parameters is that of transformers: it includes ",
                                  fixed ? "the two tables of sinusoids" : "four positions that no token ever has",
                                  unread ? " and an embedding that nothing reads" : "",
                                  ", which headshare does not store, and leaves out the bias of the output layer"));
  return shape;
}

}  // namespace

std::vector<std::string> shape_types() {
  return {"albert", "bart",  "bert",    "distilbert", "gpt2",    "llama",
          "marian", "mbart", "mistral", "qwen2",      "roberta", "xlm-roberta"};
}

HfShape read_hf_shape(const fs::path& path) {
  HS_CHECK(path_exists(path), "no model at ", path.string(), ": it does not exist");
  const bool directory = fs::is_directory(path);
  const fs::path file = directory ? path / "config.json" : path;
  HS_CHECK(path_exists(file), path.string(), " has no config.json: it is not the directory of a model");
  const HfConfig config(file);
  const nlohmann::json& value = config.value("model_type");
  const std::string where = config.config_key("model_type");
  const std::vector<std::string> known = shape_types();
  HS_CHECK(!value.is_null(), where, " is missing: this is not the configuration of a Hugging Face model; known are ",
           list_text(known));
  const std::string& type = json_string(value, where);
  HS_CHECK(std::find(known.begin(), known.end(), type) != known.end(), where, " is ", brief_text(type),
           did_you_mean(type, known), "; headshare knows ", list_text(known));
  if (type == "albert") return encoder_shape(config, type, "AlbertModel", albert_options(config));
  if (type == "bert") return encoder_shape(config, type, "BertModel", bert_options(config));
  if (type == "distilbert") return encoder_shape(config, type, "DistilBertModel", distilbert_options(config));
  if (type == "roberta" || type == "xlm-roberta")
    return encoder_shape(config, type, "RobertaModel", roberta_options(config));
  if (type == "marian") return encoder_decoder_shape(type, marian_options(config));
  if (type == "bart") return encoder_decoder_shape(type, bart_options(config));
  if (type == "mbart") return encoder_decoder_shape(type, mbart_options(config));
  if (type == "gpt2") return {.options = gpt2_options(config), .model_type = type};
  return llama_shape(config, type);
}

}  // namespace headshare
