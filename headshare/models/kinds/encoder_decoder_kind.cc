// Encoder-decoders read one sequence and write another.
#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/models/count_layers.h"
#include "headshare/models/encoder_decoder.h"
#include "headshare/models/model_kind.h"

namespace headshare {
namespace {

// Timed sources have at most the length of a long sentence, and targets are as long as they.
constexpr int64_t kTimedTokens = 64;

class TranslatorDecoding : public GreedyDecoding {
 public:
  explicit TranslatorDecoding(EncoderDecoder model) : model_(std::move(model)) {}

  int64_t length() const override { return std::min(kTimedTokens, model_->options().context); }
  // The first call of a state projects the source.
  void begin(int64_t tokens) override {
    const auto like = at::TensorOptions(at::kLong).device(model_->device());
    source_ = model_->encode({.ids = at::zeros({1, length()}, like)});
    state_ = {};  // two caches at once would take twice the memory
    state_ = model_->new_state(length());
    hidden_ = model_->hidden(at::zeros({1, tokens}, like), source_, &state_);
  }
  void step() override {
    const Tensor next = model_->logits(hidden_.narrow(1, hidden_.size(1) - 1, 1)).argmax(-1);
    hidden_ = model_->hidden(next, source_, &state_);
  }
  void wait() override { hidden_.sum().item(); }

 private:
  EncoderDecoder model_;
  EncodedSource source_;
  TranslationState state_;
  Tensor hidden_;
};

class EncoderDecoderKind : public ModelKindOf<EncoderDecoderOptions, EncoderDecoder> {
 public:
  std::string name() const override { return "encoder-decoder"; }
  std::string what_it_does(const ModelOptions&) const override {
    return "an encoder-decoder, which translates (`headshare translate`)";
  }
  std::string needed() const override {
    return "an encoder-decoder is needed here, as `headshare train --task translation` makes it";
  }
  int64_t since(const ModelOptions&) const override { return 9; }
  bool keeps_cache() const override { return true; }
  bool reads_source() const override { return true; }
  int64_t source_vocabulary(const ModelOptions& options) const override {
    return options.as<EncoderDecoderOptions>().source_vocabulary;
  }

  Fields own_fields(ModelOptions& options) const override {
    auto& own = options.as<EncoderDecoderOptions>();
    Fields list = {norms_field(&own.norms)};
    append(&list, headshare::fields(static_cast<EncoderDecoderParts&>(own)));
    list.push_back(field("source-vocabulary", &own.source_vocabulary,
                         "tokens of the source; 0: as many as the target's, --vocabulary", {.min = 0, .max = 1 << 30}));
    return list;
  }
  // The default has sinusoids, as the first Transformer does.
  ModelOptions costed() const override {
    EncoderDecoderOptions options;
    options.positions = PositionKind::kSinusoidal;
    return options;
  }
  // Own options that equal the model's scheme, layers or vocabulary follow these again.
  void forget_defaults(ModelOptions* options) const override {
    auto& own = options->as<EncoderDecoderOptions>();
    own.sites.reset();
    for (std::string* site : {&own.encoder_scheme, &own.decoder_scheme, &own.cross_scheme}) {
      if (*site == own.attention.scheme) *site = EncoderDecoderParts().encoder_scheme;
    }
    if (own.decoder_layers == own.layers) own.decoder_layers.reset();
    if (own.source_vocabulary == own.vocabulary) own.source_vocabulary = 0;
  }
  void set_scheme(const std::string& scheme, ModelOptions* options) const override {
    ModelKind::set_scheme(scheme, options);
    auto& own = options->as<EncoderDecoderOptions>();
    own.sites.reset();
    own.encoder_scheme = own.decoder_scheme = own.cross_scheme = scheme;
  }

  std::vector<AttentionOptions> attentions(const ModelOptions& resolved) const override {
    const AttentionSites& sites = *resolved.as<EncoderDecoderOptions>().sites;
    return {sites.encoder, sites.decoder, sites.cross};
  }

  // Makes one block of either side, or as many as share their keys and values, and counts them as often as they occur.
  ModelSize measure(const ModelOptions& resolved) const override {
    const auto& o = resolved.as<EncoderDecoderOptions>();
    const DeclareOn meta(at::kMeta);
    EncoderDecoderOptions one = o;
    one.layers = o.share_kv_layers;
    one.decoder_layers = o.share_kv_layers;
    const int64_t encoder_groups = o.layers / o.share_kv_layers, decoder_groups = *o.decoder_layers / o.share_kv_layers;
    const EncoderDecoder model(one);
    ModelSize size;
    const auto count = [&](const Attention& attention, int64_t number) {
      const AttentionCost cost = attention->scheme().cost();
      size.attention_parameters += number * cost.parameters;
      size.attention_parameters_effective += number * cost.effective;
      return number * cost.cache_elements * kBytesOfFloat;
    };
    for (size_t i = 0; i < model->encoder()->layers(); ++i) {
      const Block& decoder = model->decoder()->block(i);
      count(model->encoder()->block(i)->attention, encoder_groups);
      size.cache_bytes_per_token += count(decoder->attention, decoder_groups);
      size.source_cache_bytes_per_token += count(decoder->cross_attention, decoder_groups);
    }
    size.cache_elements_per_token = model->decoder()->block(0)->attention->scheme().cost().cache_elements;
    for (const Declared& parameter : declared_parameters(*model)) {
      const bool of_encoder = parameter.name.starts_with("encoder.");
      const bool of_decoder = parameter.name.starts_with("decoder.");
      const int64_t number = of_encoder ? encoder_groups : of_decoder ? decoder_groups : 1;
      size.total_parameters += number * parameter.tensor.numel();
    }
    const int64_t rows = o.vocabulary + (o.share_embeddings ? 0 : o.source_vocabulary);
    size.embedding_parameters = rows * o.attention.d_model;
    size.feed_forward_width = *o.feed_forward_width;
    return size;
  }

  // Counts the blocks as blocks of an encoder: those of the decoder have a second attention and count about half as
  // much again.
  TransformerOptions as_one_stack(const ModelOptions& resolved) const override {
    const auto& o = resolved.as<EncoderDecoderOptions>();
    TransformerOptions stack = o;
    stack.layers += *o.decoder_layers + (*o.decoder_layers + 1) / 2;
    return stack;
  }

  std::unique_ptr<GreedyDecoding> decoding(const std::shared_ptr<torch::nn::Module>& model) const override {
    return std::make_unique<TranslatorDecoding>(EncoderDecoder(std::dynamic_pointer_cast<EncoderDecoderImpl>(model)));
  }
};

}  // namespace

template <>
const ModelKind& kind_of<EncoderDecoderOptions>() {
  static const EncoderDecoderKind kind;
  return kind;
}

}  // namespace headshare
