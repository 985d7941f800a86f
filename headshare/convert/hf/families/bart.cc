#include "headshare/convert/hf/families/bart.h"

#include "headshare/convert/hf/families/encoder_decoder_family.h"
#include "headshare/convert/hf/target_language.h"

namespace headshare {
namespace {

// BartConfig's defaults, where they are not ours; MBartConfig's are the same.
EncoderDecoderFamily bart() {
  EncoderDecoderOptions o;
  o.vocabulary = 50265;
  o.context = 1024;
  o.layers = 12;
  o.decoder_layers = 12;
  o.feed_forward_width = 4096;
  o.positions = PositionKind::kLearned;
  o.activation = ActivationKind::kGeluErf;
  o.dropout = 0.1;
  o.scale_embeddings = false;
  o.embedding_norm = true;
  o.attention.d_model = 1024;
  o.attention.heads = 16;
  o.attention.projection_bias = true;
  o.marks = {.start = 2, .end = 2};
  return {.name = "BART",
          .with_head = "BartForConditionalGeneration",
          .plain = "BartModel",
          .defaults = o,
          .first_token = 0,
          .unused_positions = 2};
}

EncoderDecoderFamily mbart() {
  EncoderDecoderFamily family = bart();
  family.name = "mBART";
  family.with_head = "MBartForConditionalGeneration";
  family.plain = "MBartModel";
  family.defaults.norms = NormPlacement::kBefore;
  family.defaults.marks.start = -1;  // a language's token: target_language.h
  return family;
}

HfShape bart_shape(const HfConfig& config, const std::string& type) {
  return encoder_decoder_shape(type, encoder_decoder_options(config, bart()));
}

HfShape mbart_shape(const HfConfig& config, const std::string& type) {
  return encoder_decoder_shape(type, encoder_decoder_options(config, mbart()));
}

ForeignModel open_bart(const std::shared_ptr<const HfDirectory>& directory) {
  return open_encoder_decoder(directory, bart());
}

ForeignModel open_mbart(const std::shared_ptr<const HfDirectory>& directory) {
  ForeignModel foreign = open_encoder_decoder(directory, mbart());
  take_target_language(*directory, &foreign);
  return foreign;
}

}  // namespace

HfModelType bart_type() {
  return {.name = "bart", .models = {"BART"}, .kind = "encoder-decoder", .shape = bart_shape, .open = open_bart};
}

HfModelType mbart_type() {
  return {.name = "mbart", .models = {"mBART"}, .kind = "encoder-decoder", .shape = mbart_shape, .open = open_mbart};
}

}  // namespace headshare
