#include "headshare/convert/exact/exact_model.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/memory.h"
#include "headshare/convert/collaborative/attention_layers.h"
#include "headshare/convert/collaborative/model_change.h"
#include "headshare/models/size.h"

namespace headshare {
namespace {

constexpr int64_t kRows = 2, kTokens = 24;  // of the random text that proves a fold

template <class Options>
Options folded_options(const Options& source, const ExactTarget& to, const NeededBiases& needed) {
  Options options = with_attention(source, [&](const AttentionOptions& one) { return exact_options(one, to, needed); });
  options.layer_key_widths.clear();
  return resolve(options);
}

template <class Model>
Model in_double_precision(const Model& model) {
  Model copy(model->options());
  copy->to(at::kDouble);
  load_tensors(*copy, model_tensors(*model), "the model");
  copy->eval();
  return copy;
}

Tensor random_tokens(int64_t vocabulary, int64_t context, uint64_t seed) {
  return at::randint(vocabulary, {kRows, std::min(context, kTokens)}, keyed_generator(at::kCPU, seed), at::kLong);
}

// Returns what each layer makes of random hidden states, one below the other.
Tensor outputs_of_layers(const Encoder& model) {
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < model->layers(); ++i) {
    const Attention attention = model->attention(i);
    const AttentionOptions& options = attention->scheme().options();
    const at::ScalarType type = declared_parameters(*attention).front().tensor.scalar_type();
    const Tensor x = at::randn({kRows, kTokens, options.d_model}, keyed_generator(at::kCPU, i), at::kDouble).to(type);
    outputs.push_back(attention->self(x, {}));
  }
  return at::cat(outputs);
}

Tensor outputs_of(const Decoder& model) {
  const DecoderOptions& options = model->options();
  return model->logits(model->hidden(random_tokens(options.vocabulary, options.context, 1)));
}

Tensor outputs_of(const Encoder& model) {
  const EncoderOptions& options = model->options();
  if (is_hashed(options.embedding)) return outputs_of_layers(model);
  const Tensor hidden = model->hidden({.ids = random_tokens(options.vocabulary, options.context, 1)});
  return options.masked_head ? model->logits(hidden) : hidden;
}

Tensor outputs_of(const EncoderDecoder& model) {
  const EncoderDecoderOptions& options = model->options();
  const Tensor source = random_tokens(options.source_vocabulary, options.context, 1);
  return model->hidden(random_tokens(options.vocabulary, options.context, 2), model->encode({.ids = source}));
}

Tensor outputs_of(const VisionTransformer& model) {
  const VisionOptions& options = model->options();
  const int64_t side = options.image_size;
  const at::ScalarType type = declared_parameters(*model).front().tensor.scalar_type();
  const Tensor pixels =
      at::randn({kRows, options.channels, side, side}, keyed_generator(at::kCPU, 1), at::kDouble).to(type);
  return options.classes > 0 ? model->scores(pixels) : model->hidden(pixels);
}

template <class Model>
double change_between(const Model& before, const Model& after) {
  const Tensor one = outputs_of(before), other = outputs_of(after);
  const double size = one.abs().max().template item<double>();
  const double change = (one - other).abs().max().template item<double>();
  return size == 0 ? change : change / size;
}

template <class Model>
AnyModel folded(const Model& source, const ExactTarget& to, bool biased, ExactReport* report) {
  const std::vector<AttentionLayer> layers = attention_layers(*source);
  NeededBiases needed{.projection = biased, .content = false};
  for (const AttentionLayer& one : layers) {
    const AttentionOptions& options = one.attention->scheme().options();
    exact_options(options, to, {true, false});  // what is impossible is refused before maps are read
    const NeededBiases own = exact_biases(exact_maps(one.attention->scheme(), one.name), options, to);
    needed = {needed.projection || own.projection, needed.content || own.content};
  }
  Model target(folded_options(source->options(), to, needed));
  target->to(at::kDouble);
  target->eval();
  copy_all_but_attention(source, target);
  const std::vector<AttentionLayer> filled = attention_layers(*target);
  for (size_t i = 0; i < layers.size(); ++i) {
    Attention attention = filled[i].attention;
    const Scheme& from = layers[i].attention->scheme();
    fill_exactly(exact_maps(from, layers[i].name), from.options(), layers[i].name, &attention->scheme());
  }
  report->in_double = change_between(in_double_precision(source), target);
  HS_CHECK(report->in_double <= kExact, "the two models differ by ", report->in_double,
           " of their largest output in double precision, and ", kExact,
           " is allowed: these weights have no exact form as ", to.scheme, "; leave --exact out for an approximation");
  target->to(at::kFloat);
  report->as_stored = change_between(source, target);
  return {.options = target->options(), .module = target.ptr()};
}

}  // namespace

ModelOptions exact_model_options(const ModelOptions& source, const ExactTarget& to) {
  refuse_shared_memory(source.common(), "`convert` does not rewrite");
  const auto needed = [&](const AttentionOptions& one) {
    return NeededBiases{.projection = true, .content = keeps_content_bias(one, to)};
  };
  if (const auto* decoder = source.find<DecoderOptions>()) {
    return folded_options(*decoder, to, needed(decoder->attention));
  }
  if (const auto* encoder = source.find<EncoderOptions>()) {
    return folded_options(*encoder, to, needed(encoder->attention));
  }
  if (const auto* vision = source.find<VisionOptions>()) {
    return folded_options(*vision, to, needed(vision->attention));
  }
  const auto* both = source.find<EncoderDecoderOptions>();
  HS_CHECK(both != nullptr, "the attention of ", with_article(source.kind()), " cannot be rewritten by --exact");
  return folded_options(*both, to, needed(both->sites->encoder));
}

double relative_change(const AnyModel& before, const AnyModel& after) {
  const at::NoGradGuard no_grad;
  if (before.options.find<DecoderOptions>() != nullptr) {
    return change_between(before.as<Decoder>(), after.as<Decoder>());
  }
  if (before.options.find<EncoderOptions>() != nullptr) {
    return change_between(before.as<Encoder>(), after.as<Encoder>());
  }
  if (before.options.find<VisionOptions>() != nullptr) {
    return change_between(before.as<VisionTransformer>(), after.as<VisionTransformer>());
  }
  return change_between(before.as<EncoderDecoder>(), after.as<EncoderDecoder>());
}

AnyModel fold_exactly(const AnyModel& source, const ExactTarget& to, bool biased, ExactReport* report) {
  const at::NoGradGuard no_grad;
  const ModelOptions result = exact_model_options(source.options, to);
  check_memory(2 * (parameter_bytes(source.options) + parameter_bytes(result)), "both models in double precision",
               "use a machine with more memory");
  if (source.options.find<DecoderOptions>() != nullptr) return folded(source.as<Decoder>(), to, biased, report);
  if (source.options.find<EncoderOptions>() != nullptr) return folded(source.as<Encoder>(), to, biased, report);
  if (source.options.find<VisionOptions>() != nullptr) {
    return folded(source.as<VisionTransformer>(), to, biased, report);
  }
  return folded(source.as<EncoderDecoder>(), to, biased, report);
}

}  // namespace headshare
