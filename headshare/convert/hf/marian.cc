#include "headshare/convert/hf/marian.h"

#include "headshare/base/error.h"
#include "headshare/convert/hf/encoder_decoder_family.h"

namespace headshare {
namespace {

// MarianConfig's defaults, where they are not ours.
EncoderDecoderFamily marian() {
  EncoderDecoderOptions o;
  o.vocabulary = 58101;
  o.context = 1024;
  o.layers = 12;
  o.decoder_layers = 12;
  o.feed_forward_width = 4096;
  o.positions = PositionKind::kSinusoidal;
  o.sinusoid_order = SinusoidOrder::kHalves;
  o.activation = ActivationKind::kGeluErf;
  o.dropout = 0.1;
  o.scale_embeddings = false;
  o.attention.d_model = 1024;
  o.attention.heads = 16;
  o.attention.projection_bias = true;
  o.marks = {.start = 58100, .end = 0};
  return {.name = "MarianMT",
          .with_head = "MarianMTModel",
          .plain = "MarianModel",
          .defaults = o,
          .first_token = std::nullopt,
          .may_separate = true};
}

// Sets where the tokenizers of source and target are, or what is to be said where they are not to be had. A
// tokenizer.json beside them is of other programs, and has one side at most. target_vocab.json is there where the sides
// do not share their ids.
void find_tokenizers(const fs::path& directory, ForeignModel* foreign) {
  PieceFiles files{.source = directory / "source.spm",
                   .target = directory / "target.spm",
                   .source_vocabulary = directory / "vocab.json",
                   .target_vocabulary = directory / "target_vocab.json"};
  if (!fs::exists(files.target_vocabulary)) files.target_vocabulary = files.source_vocabulary;
  if (fs::exists(files.source) && fs::exists(files.target) && fs::exists(files.source_vocabulary)) {
    foreign->pieces = files;
    return;
  }
  foreign->tokenizer_advice = join_text(
      directory.string(),
      ": text needs MarianMT's tokenizers source.spm, target.spm and vocab.json, which are not all there: the model is "
      "of no use for text without them; put them beside it, or give one for both sides with --tokenizer PATH");
}

}  // namespace

EncoderDecoderOptions marian_options(const HfConfig& config) { return encoder_decoder_options(config, marian()); }

ForeignModel map_marian(const std::shared_ptr<const HfDirectory>& directory) {
  ForeignModel foreign = map_encoder_decoder(directory, marian());
  find_tokenizers(directory->path(), &foreign);
  return foreign;
}

}  // namespace headshare
