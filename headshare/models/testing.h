// For tests only: these functions make small decoders and encoders of every scheme.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/rng.h"
#include "headshare/models/decoder.h"
#include "headshare/models/encoder.h"
#include "headshare/models/encoder_decoder.h"
#include "headshare/models/size.h"
#include "headshare/ops/allocation_meter.h"
#include "headshare/ops/testing.h"

namespace headshare {

// Returns options with 2 layers, 4 heads, width 16, 13 tokens, context 10.
inline DecoderOptions small_options(const std::string& scheme, PositionKind positions = PositionKind::kLearned) {
  DecoderOptions options{.vocabulary = 13, .context = 10, .layers = 2, .positions = positions};
  options.attention = {.scheme = scheme, .d_model = 16, .heads = 4};
  return options;
}

inline bool supports(const std::string& scheme, PositionKind positions) {
  const AttentionOptions rotary{
      .scheme = scheme, .d_model = 16, .heads = 4, .head_width = 4, .key_width = 16, .rotary = true};
  const auto why_not = scheme_record(scheme).why_not;
  return positions != PositionKind::kRotary || why_not == nullptr || why_not(rotary).empty();
}

// Makes an initialised decoder in evaluation mode.
inline Decoder small_decoder(const DecoderOptions& options, uint64_t seed = 1) {
  Decoder model(resolve(options));
  initialise(*model, seed);
  model->eval();
  return model;
}

// Returns the same sizes, with a masked-LM head and a pooler.
inline EncoderOptions small_encoder_options(const std::string& scheme,
                                            PositionKind positions = PositionKind::kLearned) {
  EncoderOptions options;
  options.vocabulary = 13;
  options.context = 10;
  options.layers = 2;
  options.positions = positions;
  options.attention.scheme = scheme;
  options.attention.d_model = 16;
  options.attention.heads = 4;
  options.masked_head = options.pooler = true;
  return options;
}

// Makes an initialised encoder in evaluation mode.
inline Encoder small_encoder(const EncoderOptions& options, uint64_t seed = 1) {
  Encoder model(resolve(options));
  initialise(*model, seed);
  model->eval();
  return model;
}

// Puts random values into every parameter, the biases too.
inline void randomise(const torch::nn::Module& model) {
  const at::NoGradGuard no_grad;
  for (const Declared& one : declared_parameters(model)) {
    one.tensor.copy_(random_tensor(one.tensor.sizes(), stream_key(3, one.name), at::kFloat, 0.3));
  }
}

// Makes a translator with random values in every parameter, in evaluation mode; with the sizes of small_options().
inline EncoderDecoder random_translator(const std::string& scheme, const std::string& cross_scheme,
                                        PositionKind positions = PositionKind::kSinusoidal) {
  EncoderDecoderOptions options;
  options.vocabulary = 13;
  options.context = 10;
  options.layers = 2;
  options.positions = positions;
  options.attention = {.scheme = scheme, .d_model = 16, .heads = 4};
  options.cross_scheme = cross_scheme;
  options.marks = {.start = 0, .end = 1};
  EncoderDecoder model(resolve(options));
  randomise(*model);
  model->eval();
  return model;
}

// Sets the weights and biases of a layer's projection `part`, such as "query", to 0.
inline void zero_part(const torch::nn::Module& layer, const std::string& part) {
  const at::NoGradGuard no_grad;
  for (const Declared& one : declared_parameters(layer)) {
    if (one.name.find(part + ".") != std::string::npos) one.tensor.zero_();
  }
}

// Checks that measure() gives the counts of the model's parameters.
template <class Model>
void expect_counted(const Model& model) {
  int64_t total = 0;
  int64_t attention = 0;
  for (const Declared& one : declared_parameters(*model)) {
    total += one.tensor.numel();
    const bool in_attention = one.name.find(".attention.") != std::string::npos;
    if (in_attention && !one.name.ends_with(".bias")) attention += one.tensor.numel();
  }
  const ModelSize size = measure(model->options());
  EXPECT_EQ(size.total_parameters, total);
  EXPECT_EQ(size.attention_parameters, attention);
  EXPECT_LE(size.attention_parameters_effective, size.attention_parameters);
  const bool table = model->options().positions == PositionKind::kSinusoidal;
  const int64_t sinusoids = table ? model->options().context * embedding_width(model->options()) : 0;
  EXPECT_EQ(parameter_bytes(model->options()), 4.0 * static_cast<double>(total + sinusoids));
}

// Checks that models of every scheme, which `make` makes with one seed, start the parameters they have in common with
// the same values.
template <class Make>
void expect_shared_starts(const Make& make) {
  std::map<std::string, std::map<std::vector<int64_t>, Tensor>> seen;
  int shared = 0;
  for (const std::string& scheme : scheme_names()) {
    const auto model = make(scheme);
    for (const Declared& one : declared_parameters(*model)) {
      const auto [at, fresh] = seen[one.name].emplace(one.tensor.sizes().vec(), one.tensor);
      EXPECT_TRUE(at::equal(at->second, one.tensor)) << scheme << ": " << one.name;
      shared += fresh ? 0 : 1;
    }
  }
  EXPECT_GT(shared, 200);
}

// Returns random ids, int64 [rows, length], below `vocabulary`.
inline Tensor random_ids(int64_t rows, int64_t length, int64_t vocabulary, uint64_t seed = 1) {
  return at::randint(vocabulary, {rows, length}, keyed_generator(at::kCPU, seed), at::kLong);
}

// Expects an evaluation and training steps of a decoder to take about the memory that is estimated for them, with
// recomputation or without.
inline void expect_estimated_memory(const DecoderOptions& resolved, const std::vector<bool>& recompute) {
  const Tensor text = random_ids(32, 64, resolved.vocabulary);
  Decoder model = small_decoder(resolved);
  {
    const at::NoGradGuard no_grad;
    const AllocationMeter meter;
    model->token_losses(text, text);
    const double share = evaluation_bytes(resolved, {.batch = 32, .length = 64}) / static_cast<double>(meter.peak());
    EXPECT_GT(share, 1 / 1.5);
    EXPECT_LT(share, 1.5);
  }
  model->train();
  const double parameters = 4.0 * static_cast<double>(measure(resolved).total_parameters);
  for (const bool again : recompute) {
    model->set_recompute(again);
    model->zero_grad();
    const AllocationMeter meter;
    model->loss(text, text).sum.backward();
    const double estimate = training_bytes(resolved, {.batch = 32, .length = 64, .recompute = again}) - 3 * parameters;
    EXPECT_NEAR(estimate / static_cast<double>(meter.peak()), 1, 0.34) << again;
  }
}

// Names positions for parameterised tests, as in "gqa_rotary".
inline std::string position_name(PositionKind kind) {
  DecoderOptions options{.positions = kind};
  return to_json(fields(options)).at("positions").get<std::string>();
}

}  // namespace headshare
