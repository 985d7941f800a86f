// Decoders are language models, which continue text.
#include <ATen/ATen.h>

#include "headshare/models/count_layers.h"
#include "headshare/models/decoder.h"
#include "headshare/models/model_kind.h"

namespace headshare {
namespace {

class DecoderDecoding : public GreedyDecoding {
 public:
  explicit DecoderDecoding(Decoder model) : model_(std::move(model)) {}

  int64_t length() const override { return model_->options().context; }
  void begin(int64_t tokens) override {
    state_ = {};  // two caches at once would take twice the memory
    state_ = model_->new_state(length());
    hidden_ = model_->hidden(at::zeros({1, tokens}, at::TensorOptions(at::kLong).device(model_->device())), &state_);
  }
  void step() override {
    hidden_ = model_->hidden(model_->logits(hidden_.narrow(1, hidden_.size(1) - 1, 1)).argmax(-1), &state_);
  }
  void wait() override { hidden_.sum().item(); }

 private:
  Decoder model_;
  DecodingState state_;
  Tensor hidden_;
};

class DecoderKind : public ModelKindOf<DecoderOptions, Decoder> {
 public:
  std::string name() const override { return "decoder"; }
  std::string title(const ModelOptions&) const override { return "decoder language model"; }
  std::string what_it_does(const ModelOptions&) const override {
    return "a decoder language model, which continues text (`headshare generate`)";
  }
  std::string needed() const override {
    return "a decoder language model is needed here, as `headshare train` makes it";
  }
  int64_t since(const ModelOptions&) const override { return 1; }
  bool is_causal() const override { return true; }
  bool keeps_cache() const override { return true; }

  ModelSize measure(const ModelOptions& resolved) const override {
    ModelSize size = count_layers<Decoder>(resolved.as<DecoderOptions>());
    size.embedding_parameters = count_embedding({}, resolved.common());
    return size;
  }

  std::unique_ptr<GreedyDecoding> decoding(const std::shared_ptr<torch::nn::Module>& model) const override {
    return std::make_unique<DecoderDecoding>(Decoder(std::dynamic_pointer_cast<DecoderImpl>(model)));
  }
};

}  // namespace

template <>
const ModelKind& kind_of<DecoderOptions>() {
  static const DecoderKind kind;
  return kind;
}

}  // namespace headshare
