#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/strings/format.h"
#include "headshare/convert/hf/families/encoder_decoder_family.h"
#include "headshare/convert/hf/generation_config.h"
#include "headshare/convert/hf/written_config.h"

namespace headshare {
namespace {

constexpr const char* kStart = "decoder_start_token_id";
constexpr const char* kEnd = "eos_token_id";
constexpr double kMarianEpsilon = 1e-5;  // torch's default, which transformers takes

const std::vector<HfKey>& encoder_decoder_keys() {
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

// Sides that differ have no place in ours. A decoder's key that is absent has the family's default, not the encoder's
// value.
void refuse_unequal_sides(const HfConfig& config, const EncoderDecoderOptions& encoder,
                          const EncoderDecoderOptions& defaults) {
  EncoderDecoderOptions decoder = defaults;
  const HfKey heads = {.theirs = "decoder_attention_heads", .ours = "heads"};
  const HfKey width = {.theirs = "decoder_ffn_dim", .ours = "feed-forward-width"};
  read_keys(config, {heads, width}, stored_fields(decoder));
  const auto origin = [&](const HfKey& key) { return config.value(key.theirs).is_null() ? " (by default)" : ""; };
  HS_CHECK(decoder.attention.heads == encoder.attention.heads, config.config_key(heads.theirs), " is ",
           decoder.attention.heads, origin(heads), " and encoder_attention_heads ", encoder.attention.heads,
           "; headshare has models with as many heads on both sides");
  HS_CHECK(decoder.feed_forward_width == encoder.feed_forward_width, config.config_key(width.theirs), " is ",
           *decoder.feed_forward_width, origin(width), " and encoder_ffn_dim ", *encoder.feed_forward_width,
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

// transformers' generate() begins with decoder_start_token_id, else with bos_token_id. Where its file names neither it
// stops; what it trains with stands in config.json, or is the family's.
int64_t read_start(const HfConfig& config, const HfGeneration& generation, const EncoderDecoderFamily& family) {
  std::optional<int64_t> start = generation.id(kStart);
  if (!start) start = generation.id("bos_token_id");
  if (!start) start = token_id(config, kStart);
  if (!start && family.defaults.marks.start >= 0) start = family.defaults.marks.start;
  HS_CHECK(start || family.first_token, generation.key(kStart), " is missing: the token before a target is not known");
  return start ? *start : *family.first_token;
}

// Where generation_config.json names no end, transformers would never stop: config.json's counts.
int64_t read_end(const HfConfig& config, const HfGeneration& generation, int64_t otherwise) {
  const std::optional<int64_t> named = generation.id(kEnd);
  return named ? *named : token_id(config, kEnd).value_or(otherwise);
}

void read_marks(const HfConfig& config, const EncoderDecoderFamily& family, TargetMarks* marks) {
  const HfGeneration generation(config);
  marks->start = read_start(config, generation, family);
  marks->end = read_end(config, generation, marks->end);
  marks->forced_first = generation.forced_first();
  marks->forced_last = generation.id("forced_eos_token_id");
  const std::vector<int64_t> never = generation.never_produced(marks->end);
  if (never.size() == 1) marks->never_produced = never.front();
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
  const std::string refusal = why_not_causal(config);
  HS_CHECK(refusal.empty(), refusal);
  refuse_other_blocks(config, family);
  EncoderDecoderOptions options = family.defaults;
  options.scale_init = false;  // init_std is theirs
  read_keys(config, encoder_decoder_keys(), stored_fields(options));
  refuse_unequal_sides(config, options, family.defaults);
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
  const HfGeneration generation(config);
  if (generation.has_own_file() && generation.value(kEnd).is_null()) {
    notes.push_back(join_text(generation.key(kEnd), " is missing: transformers would never end a target; token ",
                              options.marks.end, " ends one here"));
  }
  for (std::string& one : generation_notes(generation, options.marks)) notes.push_back(std::move(one));
  return notes;
}

std::vector<std::string> marian_objections(const EncoderDecoderOptions& o) {
  const std::string no_place = ", which MarianMT has no place for; only headshare reads such a model";
  const std::string model = "the encoder-decoder";
  std::vector<std::string> texts;
  for (const AttentionOptions* site : {&o.sites->encoder, &o.sites->decoder, &o.sites->cross}) {
    const Objections all = {{site->scheme != "mha", model + "'s attention is " + site->scheme + no_place},
                            {site->qk_norm, model + " norms queries and keys (--qk-norm)" + no_place},
                            {site->content_bias, model + " has a content bias (--content-bias)" + no_place}};
    for (std::string& one : raised(all, why_not_usual_heads(*site, model, no_place))) texts.push_back(std::move(one));
  }
  const bool turned = o.positions == PositionKind::kRotary || o.positions == PositionKind::kAlibi;
  const Objections whole = {
      {turned, model + "'s positions are rotary or ALiBi's (--positions)" + no_place},
      {o.norms != NormPlacement::kAfter, model + "'s norms stand before (--norms)" + no_place},
      {o.norm != NormKind::kLayer, model + "'s norms are RMS norms (--norm)" + no_place},
      {o.embedding_norm, model + " norms its embeddings (--embedding-norm)" + no_place},
      {o.norm_epsilon != kMarianEpsilon,
       join_text(model, "'s norms add ", o.norm_epsilon, " (--norm-epsilon), and MarianMT's ", kMarianEpsilon)},
      {is_gated(o.feed_forward), model + "'s feed-forward part is gated" + no_place}};
  for (std::string& one : raised(whole, "")) texts.push_back(std::move(one));
  return texts;
}

void add_marian_config(const ModelToWrite& model, HfContent* content) {
  const auto& o = model.options.as<EncoderDecoderOptions>();
  nlohmann::json& config = content->config = begin_config("marian", "MarianMTModel", encoder_decoder_keys(), o);
  config["decoder_attention_heads"] = o.attention.heads;
  config["decoder_ffn_dim"] = *o.feed_forward_width;
  config["vocab_size"] = o.source_vocabulary;
  config["decoder_vocab_size"] = o.vocabulary;
  config["share_encoder_decoder_embeddings"] = o.share_embeddings && o.tie_embeddings;
  config["activation_function"] = activation_name(o.activation);
  config["scale_embedding"] = o.scale_embeddings;
  config["is_encoder_decoder"] = true;
  const TargetMarks& marks = o.marks;
  // generate() asks for a token of padding; attention masks say where it stands.
  nlohmann::json ids = {{"decoder_start_token_id", marks.start},
                        {"eos_token_id", marks.end},
                        {"pad_token_id", marks.never_produced.value_or(marks.start)}};
  if (marks.forced_first) ids["forced_bos_token_id"] = *marks.forced_first;
  if (marks.forced_last) ids["forced_eos_token_id"] = *marks.forced_last;
  config.update(ids);
  if (marks.never_produced) {
    ids["bad_words_ids"] = nlohmann::json::array({nlohmann::json::array({*marks.never_produced})});
  }
  content->generation = std::move(ids);
}

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

}  // namespace headshare
