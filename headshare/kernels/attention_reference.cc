#include "headshare/kernels/attention_reference.h"

#include <cmath>
#include <limits>

#include "headshare/kernels/bf16.h"

namespace headshare::kernels {
namespace {

template <class Real>
Real kept_as(Kept kept, Real x) {
  return kept == Kept::kBf16 ? static_cast<Real>(to_float(to_bf16(static_cast<float>(x)))) : x;
}

template <class Real>
void keep_all(Kept kept, std::vector<Real>* values) {
  for (Real& one : *values) one = kept_as(kept, one);
}

// This is one (sentence, head) of a problem.
template <class Real>
struct OneHead {
  const AttentionSizes& s;
  const AttentionRule& rule;
  const AttentionInputs<float>& in;
  int64_t b, h;
  Kept matrices;

  const float* query(int64_t i) const { return in.query.at(b, h * s.Hq / s.H) + i * in.query.row; }
  const float* key(int64_t j) const { return in.key.at(b, h * s.Hk / s.H) + j * in.key.row; }
  const float* value(int64_t j) const { return in.value.at(b, h * s.Hv / s.H) + j * in.value.row; }

  bool sees(int64_t i, int64_t j) const {
    if (rule.causal && j > i + s.S - s.T) return false;
    return rule.visible_keys == nullptr || rule.visible_keys[b * s.S + j];
  }

  Real score(int64_t i, int64_t j) const {
    Real product = 0;
    for (int64_t d = 0; d < s.Dk; ++d) product += static_cast<Real>(query(i)[d]) * key(j)[d];
    if (rule.key_bias != nullptr) product += rule.key_bias[(b * s.H + h) * s.S + j];
    Real score = rule.scale * product;
    if (rule.alibi_slopes != nullptr) {
      score -= rule.alibi_slopes[h] * std::abs(static_cast<Real>(i + s.S - s.T - j));
    }
    return kept_as(matrices, score);
  }

  // Returns the factor by which dropout multiplies the weight.
  Real kept(int64_t i, int64_t j) const {
    if (!rule.dropout.active()) return 1;
    return keeps(rule.dropout, b, h, i, j) ? static_cast<Real>(rule.dropout.kept_scale()) : 0;
  }

  void softmax_row(int64_t i, Real* row) const {
    constexpr Real kNever = -std::numeric_limits<Real>::infinity();
    Real largest = kNever;
    for (int64_t j = 0; j < s.S; ++j) {
      row[j] = sees(i, j) ? score(i, j) : kNever;
      largest = std::max(largest, row[j]);
    }
    if (rule.sinks != nullptr) largest = std::max<Real>(largest, rule.sinks[h]);
    Real sum = rule.sinks != nullptr ? std::exp(rule.sinks[h] - largest) : 0;
    for (int64_t j = 0; j < s.S; ++j) {
      row[j] = std::isinf(row[j]) ? 0 : std::exp(row[j] - largest);
      sum += row[j];
    }
    for (int64_t j = 0; j < s.S; ++j) row[j] = sum > 0 ? kept_as(matrices, row[j] / sum) : 0;
  }
};

}  // namespace

template <class Real>
ReferenceResult<Real> reference_forward(const AttentionSizes& s, const AttentionRule& rule,
                                        const AttentionInputs<float>& in, Kept kept) {
  ReferenceResult<Real> result;
  result.out.resize(static_cast<size_t>(s.B * s.H * s.T * s.Dv));
  result.weights.resize(static_cast<size_t>(s.B * s.H * s.T * s.S));
  for (int64_t row = 0; row < s.B * s.H * s.T; ++row) {
    const OneHead<Real> head{s, rule, in, row / (s.H * s.T), row / s.T % s.H, kept};
    const int64_t i = row % s.T;
    Real* weights = result.weights.data() + row * s.S;
    head.softmax_row(i, weights);
    for (int64_t j = 0; j < s.S; ++j) {
      if (!head.sees(i, j)) continue;
      const Real weight = weights[j] * head.kept(i, j);
      for (int64_t d = 0; d < s.Dv; ++d) result.out[static_cast<size_t>(row * s.Dv + d)] += weight * head.value(j)[d];
    }
  }
  keep_all(kept, &result.out);
  return result;
}

namespace {

// Adds the gradients that query i of one head finds.
template <class Real>
void backward_row(const OneHead<Real>& head, int64_t i, const Real* weights, const float* gradient,
                  ReferenceGradients<Real>* sums) {
  const AttentionSizes& s = head.s;
  std::vector<Real> change(static_cast<size_t>(s.S));  // of the weights
  Real mean = 0;
  Real* value = sums->value.data() + (head.b * s.Hv + head.h * s.Hv / s.H) * s.S * s.Dv;
  for (int64_t j = 0; j < s.S; ++j) {
    if (!head.sees(i, j)) continue;
    const Real kept = head.kept(i, j);
    Real& c = change[static_cast<size_t>(j)];
    for (int64_t d = 0; d < s.Dv; ++d) {
      c += static_cast<Real>(gradient[d]) * head.value(j)[d] * kept;
      value[j * s.Dv + d] += weights[j] * kept * gradient[d];
    }
    c = kept_as(head.matrices, c);
    mean += weights[j] * c;
  }
  Real* query = sums->query.data() + ((head.b * s.Hq + head.h * s.Hq / s.H) * s.T + i) * s.Dk;
  Real* key = sums->key.data() + (head.b * s.Hk + head.h * s.Hk / s.H) * s.S * s.Dk;
  for (int64_t j = 0; j < s.S; ++j) {
    const Real score = kept_as(head.matrices, head.rule.scale * weights[j] * (change[static_cast<size_t>(j)] - mean));
    if (!head.sees(i, j)) continue;
    sums->key_bias[static_cast<size_t>((head.b * s.H + head.h) * s.S + j)] += score;
    for (int64_t d = 0; d < s.Dk; ++d) {
      query[d] += score * head.key(j)[d];
      key[j * s.Dk + d] += score * head.query(i)[d];
    }
  }
}

}  // namespace

template <class Real>
ReferenceGradients<Real> reference_backward(const AttentionSizes& s, const AttentionRule& rule,
                                            const AttentionInputs<float>& in, HeadsView<const float> out_gradient,
                                            Kept kept) {
  const ReferenceResult<Real> forward = reference_forward<Real>(s, rule, in, kept);
  ReferenceGradients<Real> sums;
  sums.query.resize(static_cast<size_t>(s.B * s.Hq * s.T * s.Dk));
  sums.key.resize(static_cast<size_t>(s.B * s.Hk * s.S * s.Dk));
  sums.value.resize(static_cast<size_t>(s.B * s.Hv * s.S * s.Dv));
  sums.key_bias.resize(static_cast<size_t>(s.B * s.H * s.S));
  for (int64_t row = 0; row < s.B * s.H * s.T; ++row) {
    const OneHead<Real> head{s, rule, in, row / (s.H * s.T), row / s.T % s.H, kept};
    const int64_t i = row % s.T;
    backward_row(head, i, forward.weights.data() + row * s.S, out_gradient.at(head.b, head.h) + i * out_gradient.row,
                 &sums);
  }
  for (std::vector<Real>* one : {&sums.query, &sums.key, &sums.value, &sums.key_bias}) keep_all(kept, one);
  return sums;
}

template ReferenceResult<double> reference_forward<double>(const AttentionSizes&, const AttentionRule&,
                                                           const AttentionInputs<float>&, Kept);
template ReferenceGradients<double> reference_backward<double>(const AttentionSizes&, const AttentionRule&,
                                                               const AttentionInputs<float>&, HeadsView<const float>,
                                                               Kept);
template ReferenceResult<float> reference_forward<float>(const AttentionSizes&, const AttentionRule&,
                                                         const AttentionInputs<float>&, Kept);
template ReferenceGradients<float> reference_backward<float>(const AttentionSizes&, const AttentionRule&,
                                                             const AttentionInputs<float>&, HeadsView<const float>,
                                                             Kept);

}  // namespace headshare::kernels
