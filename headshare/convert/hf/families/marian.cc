#include "headshare/convert/hf/families/marian.h"

#include "headshare/base/error.h"
#include "headshare/convert/hf/families/encoder_decoder_family.h"
#include "headshare/text/sentencepiece/sentencepiece_tokenizer.h"

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

// A SentencePiece model for each side, and the ids of its pieces.
struct PieceFiles {
  fs::path source, target;                        // .spm
  fs::path source_vocabulary, target_vocabulary;  // vocab.json; one file where the sides share it
};

// Reads them, and checks that they are those of the model.
TokenizerPair load_pieces(const PieceFiles& files, const EncoderDecoderOptions& model) {
  TokenizerPair pair{.source = load_sentencepiece(files.source, files.source_vocabulary),
                     .target = load_sentencepiece(files.target, files.target_vocabulary)};
  check_vocabulary(*pair.target, model, files.target_vocabulary.string());
  check_source_vocabulary(*pair.source, model, files.source_vocabulary.string());
  return pair;
}

// Sets how the tokenizers of source and target are read, or what is to be said where they are not to be had. A
// tokenizer.json beside them is of other programs, and has one side at most. target_vocab.json is there where the sides
// do not share their ids.
void find_pieces(const fs::path& directory, ForeignModel* foreign) {
  PieceFiles files{.source = directory / "source.spm",
                   .target = directory / "target.spm",
                   .source_vocabulary = directory / "vocab.json",
                   .target_vocabulary = directory / "target_vocab.json"};
  if (!fs::exists(files.target_vocabulary)) files.target_vocabulary = files.source_vocabulary;
  if (fs::exists(files.source) && fs::exists(files.target) && fs::exists(files.source_vocabulary)) {
    foreign->tokenizers = [files, model = foreign->options.as<EncoderDecoderOptions>()] {
      return load_pieces(files, model);
    };
    return;
  }
  foreign->without_tokenizer = join_text(
      directory.string(),
      ": text needs MarianMT's tokenizers source.spm, target.spm and vocab.json, which are not all there: the model is "
      "of no use for text without them; put them beside it, or give one for both sides with --tokenizer PATH");
}

HfShape marian_shape(const HfConfig& config, const std::string& type) {
  return encoder_decoder_shape(type, encoder_decoder_options(config, marian()));
}

ForeignModel open_marian(const std::shared_ptr<const HfDirectory>& directory) {
  ForeignModel foreign = open_encoder_decoder(directory, marian());
  find_pieces(directory->path(), &foreign);
  return foreign;
}

ForeignModel read_back_marian(const std::shared_ptr<const HfDirectory>& directory) {
  return read_marian_back(directory, marian());
}

std::vector<std::string> marian_type_objections(const ModelOptions& options) {
  return marian_objections(options.as<EncoderDecoderOptions>());
}

HfContent marian_content(const ModelToWrite& model) {
  HfContent content{.tensors = marian_tensors(model)};
  add_marian_config(model, &content);
  return content;
}

}  // namespace

HfModelType marian_type() {
  return {.name = "marian",
          .models = {"MarianMT"},
          .kind = "encoder-decoder",
          .shape = marian_shape,
          .open = open_marian,
          .read_back = read_back_marian,
          .objections = marian_type_objections,
          .content = marian_content};
}

}  // namespace headshare
