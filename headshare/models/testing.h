// For tests only: small decoders of every scheme.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "headshare/base/rng.h"
#include "headshare/models/decoder.h"

namespace headshare {

// 2 layers, 4 heads, width 16, 13 tokens, context 10.
inline DecoderOptions small_options(SchemeKind scheme, PositionKind positions = PositionKind::kLearned) {
  DecoderOptions options{.vocabulary = 13, .context = 10, .layers = 2, .positions = positions};
  options.attention = {.scheme = scheme, .d_model = 16, .heads = 4};
  return options;
}

inline bool supports(SchemeKind scheme, PositionKind positions) {
  const bool hidden_states = scheme == SchemeKind::kElShared || scheme == SchemeKind::kElLossless;
  return !(hidden_states && positions == PositionKind::kRotary);
}

// Initialised, in evaluation mode.
inline Decoder small_decoder(const DecoderOptions& options, uint64_t seed = 1) {
  Decoder model(resolve(options));
  initialise(*model, seed);
  model->eval();
  return model;
}

// int64 [rows, length] below `vocabulary`.
inline Tensor random_ids(int64_t rows, int64_t length, int64_t vocabulary, uint64_t seed = 1) {
  return at::randint(vocabulary, {rows, length}, keyed_generator(at::kCPU, seed), at::kLong);
}

// "gqa_rotary" for the names of parameterised tests.
inline std::string position_name(PositionKind kind) {
  DecoderOptions options{.positions = kind};
  return to_json(fields(options)).at("positions").get<std::string>();
}

}  // namespace headshare
