#include <map>

#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/base/json_input.h"
#include "headshare/convert/hf/encoder_decoder_family.h"

namespace headshare {
namespace {

const std::vector<HfKey>& number_keys() {
  static const std::vector<HfKey> keys = {
      {.theirs = "max_position_embeddings", .ours = "context"},
      {.theirs = "d_model", .ours = "d-model", .general = "hidden_size"},
      {.theirs = "encoder_layers", .ours = "layers", .general = "num_hidden_layers"},
      {.theirs = "decoder_layers", .ours = "decoder-layers"},
      {.theirs = "encoder_attention_heads", .ours = "heads", .general = "num_attention_heads"},
      {.theirs = "encoder_ffn_dim", .ours = "feed-forward-width"},
      {.theirs = "dropout", .ours = "dropout"},
      {.theirs = "attention_dropout", .ours = "attention-dropout"},
      {.theirs = "init_std", .ours = "init-deviation"},
  };
  return keys;
}

// Old programs chose what a block is made of by these; today's transformers does not read them, and always has what the
// family's first models had.
void refuse_other_blocks(const HfConfig& config, const EncoderDecoderFamily& family) {
  const EncoderDecoderOptions& o = family.defaults;
  const bool before = o.norms == NormPlacement::kBefore;
  for (const auto& [key, always] : {std::pair("normalize_before", before),
                                    {"add_final_layer_norm", before},
                                    {"normalize_embedding", o.embedding_norm},
                                    {"static_position_embeddings", o.positions == PositionKind::kSinusoidal}}) {
    const nlohmann::json& value = config.value(key);
    HS_CHECK(value.is_null() || value == always, config.config_key(key), " is ", brief_json(value), ", and ",
             family.name, " of transformers always computes as if it were ", always ? "true" : "false",
             "; headshare does the same, and cannot read a model that needs it otherwise");
  }
}

// Sets an option of both sides from the decoder's key; sides that differ have no place in ours.
void refuse_unequal_sides(const HfConfig& config, const EncoderDecoderOptions& encoder) {
  EncoderDecoderOptions decoder = encoder;
  const HfKey heads = {.theirs = "decoder_attention_heads", .ours = "heads"};
  const HfKey width = {.theirs = "decoder_ffn_dim", .ours = "feed-forward-width"};
  read_keys(config, {heads, width}, stored_fields(decoder));
  HS_CHECK(decoder.attention.heads == encoder.attention.heads, config.config_key(heads.theirs), " is ",
           decoder.attention.heads, " and encoder_attention_heads ", encoder.attention.heads,
           "; headshare has models with as many heads on both sides");
  HS_CHECK(decoder.feed_forward_width == encoder.feed_forward_width, config.config_key(width.theirs), " is ",
           *decoder.feed_forward_width, " and encoder_ffn_dim ", *encoder.feed_forward_width,
           "; headshare has models with one width of feed-forward parts");
}

void read_vocabularies(const HfConfig& config, const EncoderDecoderFamily& family, EncoderDecoderOptions* o) {
  read_keys(config, {{"vocab_size", "vocabulary"}}, stored_fields(*o));
  o->source_vocabulary = o->vocabulary;
  o->tie_embeddings = config.flag("tie_word_embeddings", true);
  o->share_embeddings = o->tie_embeddings;
  if (!family.may_separate) return;
  o->share_embeddings = config.flag("share_encoder_decoder_embeddings", true);
  read_keys(config, {{"decoder_vocab_size", "vocabulary"}}, stored_fields(*o));
  HS_CHECK(!o->share_embeddings || o->vocabulary == o->source_vocabulary, config.config_key("decoder_vocab_size"),
           " is ", o->vocabulary, " and vocab_size ", o->source_vocabulary,
           ", while share_encoder_decoder_embeddings gives both sides one embedding; set that to false");
  o->share_embeddings = o->share_embeddings && o->tie_embeddings;
}

// The files that may name a token, the one that counts more first.
class MarkFiles {
 public:
  explicit MarkFiles(const HfConfig& config) : config_(config) {
    const fs::path file = config.file().parent_path() / "generation_config.json";
    if (path_exists(file)) generation_.emplace(file);
  }

  // A token's id; a list of one id is that.
  std::optional<int64_t> id(const std::string& key) const {
    const auto& [file, value] = find(key);
    if (value.is_null()) return std::nullopt;
    const std::string where = file.config_key(key);
    HS_CHECK(!value.is_array() || value.size() == 1, where, " is ", brief_json(value),
             "; headshare has one such token");
    return json_id(value.is_array() ? value.front() : value, where);
  }

  // The one token of the list of words that are never produced; other words have no place in ours.
  std::optional<int64_t> never_produced() const {
    const auto& [file, value] = find("bad_words_ids");
    if (value.is_null()) return std::nullopt;
    const std::string where = file.config_key("bad_words_ids");
    for (const nlohmann::json& word : json_list(value, where)) {
      for (const nlohmann::json& id : json_list(word, where)) json_id(id, where);
    }
    const bool is_one = value.size() == 1 && value.front().size() == 1;
    return is_one ? std::optional<int64_t>(json_id(value.front().front(), where)) : std::nullopt;
  }

  struct Found {
    const HfConfig& file;
    const nlohmann::json& value;
  };
  Found find(const std::string& key) const {
    if (generation_ && !generation_->value(key).is_null()) return {*generation_, generation_->value(key)};
    return {config_, config_.value(key)};
  }

 private:
  const HfConfig& config_;
  std::optional<HfConfig> generation_;
};

void read_marks(const HfConfig& config, const EncoderDecoderFamily& family, TargetMarks* marks) {
  const MarkFiles files(config);
  const std::optional<int64_t> start = files.id("decoder_start_token_id");
  if (start) marks->start = *start;
  if (marks->start < 0) {  // as transformers' generate() has it
    const std::optional<int64_t> first = files.id("bos_token_id");
    HS_CHECK(first || family.first_token, config.config_key("decoder_start_token_id"),
             " is missing: the token before a target is not known");
    marks->start = first ? *first : *family.first_token;
  }
  marks->end = files.id("eos_token_id").value_or(marks->end);
  marks->forced_first = files.id("forced_bos_token_id");
  marks->forced_last = files.id("forced_eos_token_id");
  marks->never_produced = files.never_produced();
}

// "dropout 0.1 and encoder_layerdrop 0.05" of the keys that are numbers other than 0; "" where there are none.
std::string numbers_text(const HfConfig& config, const std::vector<const char*>& keys) {
  std::vector<std::string> parts;
  for (const char* key : keys) {
    const nlohmann::json& value = config.value(key);
    if (value.is_number() && value != 0) parts.push_back(join_text(key, " ", value.dump()));
  }
  return parts.empty() ? "" : list_text(parts);
}

}  // namespace

EncoderDecoderOptions encoder_decoder_options(const HfConfig& config, const EncoderDecoderFamily& family) {
  refuse_what_we_lack(config);
  refuse_other_classes(config, {family.with_head, family.plain});
  HS_CHECK(!config.flag("is_decoder", false), config.config_key("is_decoder"), " is true: headshare reads ",
           family.name, " with both of its sides");
  HS_CHECK(config.flag("is_encoder_decoder", true), config.config_key("is_encoder_decoder"),
           " is false: headshare reads ", family.name, " with both of its sides");
  refuse_other_blocks(config, family);
  EncoderDecoderOptions options = family.defaults;
  options.scale_init = false;  // init_std is theirs
  read_keys(config, number_keys(), stored_fields(options));
  refuse_unequal_sides(config, options);
  read_vocabularies(config, family, &options);
  options.activation = read_activation(config, "activation_function", options.activation);
  options.scale_embeddings = config.flag("scale_embedding", options.scale_embeddings);
  read_marks(config, family, &options.marks);
  options.sites.reset();  // stored_fields() made some
  return resolve_read(config, options);
}

std::vector<std::string> encoder_decoder_notes(const HfConfig& config, const EncoderDecoderOptions& options) {
  std::vector<std::string> notes;
  const std::string training = numbers_text(config, {"activation_dropout", "encoder_layerdrop", "decoder_layerdrop"});
  if (!training.empty()) {
    notes.push_back(join_text("training differs: headshare has no dropout inside feed-forward parts and of layers, so ",
                              training, " is not kept"));
  }
  const MarkFiles files(config);
  std::vector<std::string> search;
  for (const char* key : {"num_beams", "length_penalty", "no_repeat_ngram_size", "repetition_penalty", "min_length",
                          "max_length", "early_stopping"}) {
    const nlohmann::json& value = files.find(key).value;
    if (!value.is_null()) search.push_back(join_text(key, " ", brief_json(value)));
  }
  if (!search.empty()) {
    notes.push_back(
        join_text("how to search for a target is no part of a headshare model; the files suggest ", list_text(search)));
  }
  const nlohmann::json& bad = files.find("bad_words_ids").value;
  if (!bad.is_null() && !options.marks.never_produced) {
    notes.push_back(join_text("bad_words_ids ", brief_json(bad),
                              " is not kept: headshare can leave out one token, not several or sequences"));
  }
  return notes;
}

}  // namespace headshare
