// Many queries lie along lanes: a key or value that is read once meets all of them. Compiled once for each instruction
// set.
#if defined(HEADSHARE_KERNELS_QUERY_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSHARE_KERNELS_QUERY_LANES_INL_H_
#undef HEADSHARE_KERNELS_QUERY_LANES_INL_H_
#else
#define HEADSHARE_KERNELS_QUERY_LANES_INL_H_
#endif

#include <utility>

#include "headshare/kernels/tiles.h"
#include "headshare/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headshare::kernels::HWY_NAMESPACE {

// Sums stay in registers: where vectors have sixteen floats (AVX-512) there are 32, else 16.
constexpr bool kManyRegisters = hn::MaxLanes(F()) == kLaneStep;
constexpr int kKeysAtOnce = 8;
constexpr int kDimsAtOnce = 4;
constexpr int kQueriesAtOnce = 6;
constexpr int kVectorsAtOnce = kManyRegisters ? 4 : 2;

// Adds what some dimensions give to the score of one key.
template <int... c>
HWY_INLINE FloatVec add_dims(std::integer_sequence<int, c...> /*dims*/, const float* x, const FloatVec* queries,
                             FloatVec sum) {
  ((sum = hn::MulAdd(hn::Set(F(), x[c]), queries[c], sum)), ...);
  return sum;
}

// Does the same for several keys. A key takes all dimensions in turn: there are fewer registers for addresses than
// keys.
template <int kDims, int... k>
HWY_INLINE void add_dims_of_keys(std::integer_sequence<int, k...> /*keys*/, const float* x, int64_t stride,
                                 const float* queries, int64_t lanes, FloatVec* sums) {
  FloatVec query[kDims];
  for (int c = 0; c < kDims; ++c) query[c] = hn::Load(F(), queries + c * lanes);
  ((sums[k] = add_dims(std::make_integer_sequence<int, kDims>(), x + k * stride, query, sums[k])), ...);
}

// Computes the scores of kKeys keys and of all lanes.
template <int kKeys>
HWY_INLINE void scores_of_keys(const Rows<float>& keys, int64_t first, const float* queries, const Tile& out) {
  const F d;
  const float* x = keys.data + first * keys.stride;
  for (int64_t lane = 0; lane < out.lanes; lane += static_cast<int64_t>(hn::Lanes(d))) {
    FloatVec sums[kKeys];
    for (int k = 0; k < kKeys; ++k) sums[k] = hn::Zero(d);
    int64_t c = 0;
    for (; c + kDimsAtOnce <= keys.width; c += kDimsAtOnce) {
      add_dims_of_keys<kDimsAtOnce>(std::make_integer_sequence<int, kKeys>(), x + c, keys.stride,
                                    queries + c * out.lanes + lane, out.lanes, sums);
    }
    for (; c < keys.width; ++c) {
      add_dims_of_keys<1>(std::make_integer_sequence<int, kKeys>(), x + c, keys.stride, queries + c * out.lanes + lane,
                          out.lanes, sums);
    }
    for (int k = 0; k < kKeys; ++k) hn::Store(sums[k], d, out.data + (first + k) * out.stride + lane);
  }
}

void lane_scores(const Rows<float>& keys, const float* queries, const Tile& out) {
  int64_t r = 0;
  for (; r + kKeysAtOnce <= keys.count; r += kKeysAtOnce) scores_of_keys<kKeysAtOnce>(keys, r, queries, out);
  for (; r + 4 <= keys.count; r += 4) scores_of_keys<4>(keys, r, queries, out);
  for (; r < keys.count; ++r) scores_of_keys<1>(keys, r, queries, out);
}

// Adds kVectors vectors of columns from c on for kQueries queries, whose weights begin each row of `weights`.
template <int kQueries, int kVectors>
HWY_INLINE void add_columns(const Rows<float>& values, int64_t c, const float* weights, int64_t weight_stride,
                            float* out, int64_t out_stride) {
  const F d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  FloatVec sums[kQueries][kVectors];
  for (int i = 0; i < kQueries; ++i) {
    for (int v = 0; v < kVectors; ++v) sums[i][v] = hn::LoadU(d, out + i * out_stride + c + v * step);
  }
  for (int64_t r = 0; r < values.count; ++r) {
    FloatVec value[kVectors];
    for (int v = 0; v < kVectors; ++v) value[v] = hn::LoadU(d, values.data + r * values.stride + c + v * step);
    for (int i = 0; i < kQueries; ++i) {
      const auto weight = hn::Set(d, weights[r * weight_stride + i]);
      for (int v = 0; v < kVectors; ++v) sums[i][v] = hn::MulAdd(weight, value[v], sums[i][v]);
    }
  }
  for (int i = 0; i < kQueries; ++i) {
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[i][v], d, out + i * out_stride + c + v * step);
  }
}

template <int kQueries>
HWY_INLINE void add_values(const Rows<float>& values, const float* weights, int64_t weight_stride, float* out,
                           int64_t out_stride) {
  const auto step = static_cast<int64_t>(hn::Lanes(F()));
  int64_t c = 0;
  for (; c + kVectorsAtOnce * step <= values.width; c += kVectorsAtOnce * step) {
    add_columns<kQueries, kVectorsAtOnce>(values, c, weights, weight_stride, out, out_stride);
  }
  for (; c + step <= values.width; c += step) {
    add_columns<kQueries, 1>(values, c, weights, weight_stride, out, out_stride);
  }
  for (; c < values.width; ++c) {
    for (int i = 0; i < kQueries; ++i) {
      for (int64_t r = 0; r < values.count; ++r) {
        out[i * out_stride + c] += weights[r * weight_stride + i] * values.data[r * values.stride + c];
      }
    }
  }
}

void lane_values(const Rows<float>& values, const float* weights, int64_t weight_stride, int64_t count, float* out,
                 int64_t out_stride) {
  int64_t i = 0;
  for (; i + kQueriesAtOnce <= count; i += kQueriesAtOnce) {
    add_values<kQueriesAtOnce>(values, weights + i, weight_stride, out + i * out_stride, out_stride);
  }
  for (; i + 2 <= count; i += 2) add_values<2>(values, weights + i, weight_stride, out + i * out_stride, out_stride);
  if (i < count) add_values<1>(values, weights + i, weight_stride, out + i * out_stride, out_stride);
}

}  // namespace headshare::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
