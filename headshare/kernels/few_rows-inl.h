// These are the bodies behind few_rows.h, compiled once for each instruction set.
#if defined(HEADSHARE_KERNELS_FEW_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEADSHARE_KERNELS_FEW_ROWS_INL_H_
#undef HEADSHARE_KERNELS_FEW_ROWS_INL_H_
#else
#define HEADSHARE_KERNELS_FEW_ROWS_INL_H_
#endif

#include "headshare/kernels/few_rows.h"
#include "headshare/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headshare::kernels::HWY_NAMESPACE {

// Each dot product has two sums, which hide the latency of an addition: one for each of two neighbouring vectors.
template <int kRows>
struct DotSums {
  FloatVec even[kRows], odd[kRows];
};

// Writes y of one output and the rows from x on. The row of the matrix comes from memory once, in one stream that the
// processor fetches ahead of us; several such rows at once were slower.
template <int kRows>
HWY_INLINE void dot_rows(const FewRows& p, const float* x, const float* row, float bias, float* y) {
  const F d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  DotSums<kRows> sums;
  for (int r = 0; r < kRows; ++r) sums.even[r] = sums.odd[r] = hn::Zero(d);
  int64_t k = 0;
  for (; k + 2 * step <= p.depth; k += 2 * step) {
    const auto a = hn::LoadU(d, row + k), b = hn::LoadU(d, row + k + step);
    for (int r = 0; r < kRows; ++r) {
      const float* from = x + r * p.x_stride + k;
      sums.even[r] = hn::MulAdd(a, hn::LoadU(d, from), sums.even[r]);
      sums.odd[r] = hn::MulAdd(b, hn::LoadU(d, from + step), sums.odd[r]);
    }
  }
  if (k + step <= p.depth) {
    const auto a = hn::LoadU(d, row + k);
    for (int r = 0; r < kRows; ++r) sums.even[r] = hn::MulAdd(a, hn::LoadU(d, x + r * p.x_stride + k), sums.even[r]);
    k += step;
  }
  for (int r = 0; r < kRows; ++r) {
    float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(sums.even[r], sums.odd[r])));
    for (int64_t last = k; last < p.depth; ++last) sum += row[last] * x[r * p.x_stride + last];
    y[r * p.y_stride] = sum + bias;
  }
}

void few_rows(const FewRows& p, int64_t first, int64_t last) {
  for (int64_t o = first; o < last; ++o) {
    const float* row = p.matrix + o * p.matrix_stride;
    const float bias = p.bias == nullptr ? 0.0F : p.bias[o];
    int64_t r = 0;
    const auto x = [&] { return p.x + r * p.x_stride; };
    const auto y = [&] { return p.y + r * p.y_stride + o; };
    for (; r + 4 <= p.rows; r += 4) dot_rows<4>(p, x(), row, bias, y());
    if (r + 2 <= p.rows) {
      dot_rows<2>(p, x(), row, bias, y());
      r += 2;
    }
    if (r < p.rows) dot_rows<1>(p, x(), row, bias, y());
  }
}

}  // namespace headshare::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
