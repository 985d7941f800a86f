#include "headshare/convert/hf/bart.h"

#include "headshare/convert/hf/encoder_decoder_family.h"
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

ForeignModel map_with_tokenizer(const std::shared_ptr<const HfDirectory>& directory,
                                const EncoderDecoderFamily& family) {
  ForeignModel foreign = map_encoder_decoder(directory, family);
  foreign.tokenizer = directory->tokenizer();
  return foreign;
}

}  // namespace

EncoderDecoderOptions bart_options(const HfConfig& config) { return encoder_decoder_options(config, bart()); }
EncoderDecoderOptions mbart_options(const HfConfig& config) { return encoder_decoder_options(config, mbart()); }

ForeignModel map_bart(const std::shared_ptr<const HfDirectory>& directory) {
  return map_with_tokenizer(directory, bart());
}

ForeignModel map_mbart(const std::shared_ptr<const HfDirectory>& directory) {
  ForeignModel foreign = map_with_tokenizer(directory, mbart());
  take_target_language(*directory, &foreign);
  return foreign;
}

}  // namespace headshare
