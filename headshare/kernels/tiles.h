// Tiles are where the elementwise work on scores is done, written once with Highway and chosen at run time for the CPU.
// A tile is [keys, lanes] floats in rows of `stride`: a row is a key, a lane is a query. Lanes come in multiples of
// kLaneStep; the lanes beyond the last query compute something finite that nobody reads. All exponentials are to the
// base 2: scores arrive multiplied by log2(e).
#pragma once

#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "headshare/kernels/bf16.h"
#include "headshare/kernels/dropout_mask.h"

namespace headshare::kernels {

constexpr int64_t kLaneStep = 16;  // the widest vector, in floats

inline int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

constexpr auto kLog2e = static_cast<float>(std::numbers::log2e);

struct Tile {
  float* data;
  int64_t stride;
  int64_t keys;
  int64_t lanes;
};

// These are keys or values, rows of `width` elements.
template <typename T>
struct Rows {
  const T* data;
  int64_t stride;
  int64_t count;
  int64_t width;
};

// The rule is: exponent of weight (key row j, lane i) = scale * score + key_bias[j] - slope * |distance + i - j|, and
// minus infinity unless i >= j + diagonal.
struct ScoreRule {
  float scale = 1;
  // [keys]; minus infinity hides a key. softmax_row reads a whole multiple of kLaneStep.
  const float* key_bias = nullptr;
  float slope = 0;
  float distance = 0;     // position of lane 0 less position of row 0
  int64_t diagonal = -1;  // with causal: row j is hidden from lanes below j + diagonal
  bool causal = false;
  float slack = 0;  // how far an exponent may exceed the running maximum before that moves
};

struct Tiles {
  // Takes one step of the running softmax: scores become weights 2^(exponent - m), where the maximum m [lanes] has
  // grown to this tile's; l [lanes] becomes l * fade + sum of the weights, with fade [lanes] = 2^(m before - m).
  // Answers whether any fade is not 1. m starts at minus infinity, l at 0.
  bool (*softmax_step)(const Tile& scores, const ScoreRule& rule, float* m, float* l, float* fade);
  // Turns scores into weights 2^(exponent - lse).
  void (*weights)(const Tile& scores, const ScoreRule& rule, const float* lse);
  // Turns gradients (arriving as those of the weights) into scale * weight * (gradient * keep - delta), and weights
  // into weight * keep; a null `keep` means all 1. Adds each row's sum of the new gradients to sums [keys] unless null.
  void (*score_gradients)(const Tile& weights, const Tile& gradients, const float* keep, const float* delta,
                          float scale, float* sums);
  // Writes keep [keys, lanes], rows of `lanes`: 1 / (1 - p) or 0 for keys first_key.. and queries first_query..
  void (*keep_tile)(float* keep, int64_t keys, int64_t lanes, const DropoutMask& mask, int64_t b, int64_t h,
                    int64_t first_query, int64_t first_key);
  // Computes x *= y; y has rows of x.lanes.
  void (*multiply)(const Tile& x, const float* y);
  // Computes x[r, i] *= factor[i] for row r and lane i.
  void (*scale_lanes)(const Tile& x, const float* factor);
  // Computes out[r, i] = x[r, i] * factor[i].
  void (*scaled_lanes)(const Tile& x, const float* factor, float* out, int64_t out_stride);
  // Computes out[r, i] = x[r, i] * factor[r], or += of it, for any number of columns.
  void (*scaled_rows)(const float* x, int64_t stride, int64_t rows, int64_t columns, const float* factor, float* out,
                      int64_t out_stride, bool accumulate);
  // Computes out[r] = x[r] . y[r] for rows of `width` values, floats or bf16 (summed as floats); with y_stride 0 all
  // rows have one y.
  void (*dots)(const float* x, int64_t stride, const float* y, int64_t y_stride, int64_t rows, int64_t width,
               float* out);
  void (*dots_bf16)(const Bf16* x, int64_t stride, const Bf16* y, int64_t y_stride, int64_t rows, int64_t width,
                    float* out);
  // Computes out[i, r] = query i . key r.
  void (*query_scores)(const Rows<float>& keys, const float* queries, int64_t query_stride, int64_t count, float* out,
                       int64_t out_stride);
  // Computes out[i] += sum over r of weights[i, r] * value r.
  void (*query_values)(const Rows<float>& values, const float* weights, int64_t weight_stride, int64_t count,
                       float* out, int64_t out_stride);
  // Computes out[r, i] = key r . query i for queries along lanes, [width, out.lanes]. Queries and rows of `out` begin
  // at multiples of kLaneStep floats.
  void (*lane_scores)(const Rows<float>& keys, const float* queries, const Tile& out);
  // Computes out[i] += sum over r of weights[r, i] * value r.
  void (*lane_values)(const Rows<float>& values, const float* weights, int64_t weight_stride, int64_t count, float* out,
                      int64_t out_stride);
  // Takes a step of the running softmax, as softmax_step does, for one query, whose scores [keys] lie in a row; up to
  // the next multiple of kLaneStep it is filled with zeros. No key comes after the query; slack is not read. Returns
  // fade.
  float (*softmax_row)(float* scores, int64_t keys, const ScoreRule& rule, float* m, float* l);
  // Computes y[i] = 2^x[i].
  void (*exp2)(const float* x, int64_t n, float* y);
  // Computes out [columns, rows] = x [rows, columns] transposed, any 32-bit values.
  void (*transpose)(const float* x, int64_t stride, int64_t rows, int64_t columns, float* out, int64_t out_stride);
  // Turns rows of 2 * half values, pairs (x[i], x[i + half]), by angles with these cosines and sines:
  // (x[i] c[i] - x[i + half] s[i], x[i + half] c[i] + x[i] s[i]), one rounding to T. out may be x.
  void (*rotate)(const float* x, int64_t stride, int64_t rows, int64_t half, const float* cosine, const float* sine,
                 float* out, int64_t out_stride);
  void (*rotate_bf16)(const Bf16* x, int64_t stride, int64_t rows, int64_t half, const float* cosine, const float* sine,
                      Bf16* out, int64_t out_stride);
  // Converts to bf16, row by row.
  void (*narrow)(const float* x, int64_t stride, int64_t rows, int64_t columns, Bf16* out, int64_t out_stride);
  // Converts to bf16 in pairs of rows [ceil(rows / 2), columns, 2], as TileGemm wants its right side; an odd last row
  // is paired with zeros.
  void (*narrow_pairs)(const float* x, int64_t stride, int64_t rows, int64_t columns, Bf16* out, int64_t out_stride);
  // Makes the same pairs from bf16 rows.
  void (*pairs)(const Bf16* x, int64_t stride, int64_t rows, int64_t columns, Bf16* out, int64_t out_stride);
};

// Returns the functions for this CPU.
const Tiles& tiles();

// Returns the instruction set behind tiles(), such as "AVX3".
std::string tiles_target();

// Returns every instruction set this CPU has, best first, each usable with `force_tiles_target` in tests.
std::vector<std::string> tiles_targets();
void force_tiles_target(const std::string& name);  // "": back to the best

}  // namespace headshare::kernels
