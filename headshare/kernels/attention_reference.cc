#include "headshare/kernels/attention_reference.h"

#include <cmath>
#include <limits>

namespace headshare::kernels {
namespace {

// One (sentence, head) of a problem.
struct OneHead {
  const AttentionSizes& s;
  const AttentionRule& rule;
  const AttentionInputs<float>& in;
  int64_t b, h;

  const float* query(int64_t i) const { return in.query.at(b, h * s.Hq / s.H) + i * in.query.row; }
  const float* key(int64_t j) const { return in.key.at(b, h * s.Hk / s.H) + j * in.key.row; }
  const float* value(int64_t j) const { return in.value.at(b, h * s.Hv / s.H) + j * in.value.row; }

  bool sees(int64_t i, int64_t j) const {
    if (rule.causal && j > i + s.S - s.T) return false;
    return rule.visible_keys == nullptr || rule.visible_keys[b * s.S + j];
  }

  double score(int64_t i, int64_t j) const {
    double product = 0;
    for (int64_t d = 0; d < s.Dk; ++d) product += static_cast<double>(query(i)[d]) * key(j)[d];
    if (rule.key_bias != nullptr) product += rule.key_bias[(b * s.H + h) * s.S + j];
    double score = rule.scale * product;
    if (rule.alibi_slopes != nullptr) {
      score -= rule.alibi_slopes[h] * std::abs(static_cast<double>(i + s.S - s.T - j));
    }
    return score;
  }

  // What dropout multiplies the weight with.
  double kept(int64_t i, int64_t j) const {
    if (!rule.dropout.active()) return 1;
    return keeps(rule.dropout, b, h, i, j) ? rule.dropout.kept_scale() : 0;
  }

  void softmax_row(int64_t i, double* row) const {
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t j = 0; j < s.S; ++j) {
      row[j] = sees(i, j) ? score(i, j) : -std::numeric_limits<double>::infinity();
      largest = std::max(largest, row[j]);
    }
    double sum = 0;
    for (int64_t j = 0; j < s.S; ++j) {
      row[j] = std::isinf(row[j]) ? 0 : std::exp(row[j] - largest);
      sum += row[j];
    }
    for (int64_t j = 0; j < s.S; ++j) row[j] = sum > 0 ? row[j] / sum : 0;
  }
};

}  // namespace

ReferenceResult reference_forward(const AttentionSizes& s, const AttentionRule& rule,
                                  const AttentionInputs<float>& in) {
  ReferenceResult result;
  result.out.resize(static_cast<size_t>(s.B * s.H * s.T * s.Dv));
  result.weights.resize(static_cast<size_t>(s.B * s.H * s.T * s.S));
  for (int64_t row = 0; row < s.B * s.H * s.T; ++row) {
    const OneHead head{s, rule, in, row / (s.H * s.T), row / s.T % s.H};
    const int64_t i = row % s.T;
    double* weights = result.weights.data() + row * s.S;
    head.softmax_row(i, weights);
    for (int64_t j = 0; j < s.S; ++j) {
      if (!head.sees(i, j)) continue;
      const double weight = weights[j] * head.kept(i, j);
      for (int64_t d = 0; d < s.Dv; ++d) result.out[static_cast<size_t>(row * s.Dv + d)] += weight * head.value(j)[d];
    }
  }
  return result;
}

namespace {

// Adds what query i of one head finds.
void backward_row(const OneHead& head, int64_t i, const double* weights, const float* gradient,
                  ReferenceGradients* sums) {
  const AttentionSizes& s = head.s;
  std::vector<double> change(static_cast<size_t>(s.S));  // of the weights
  double mean = 0;
  double* value = sums->value.data() + (head.b * s.Hv + head.h * s.Hv / s.H) * s.S * s.Dv;
  for (int64_t j = 0; j < s.S; ++j) {
    if (!head.sees(i, j)) continue;
    const double kept = head.kept(i, j);
    double& c = change[static_cast<size_t>(j)];
    for (int64_t d = 0; d < s.Dv; ++d) {
      c += static_cast<double>(gradient[d]) * head.value(j)[d] * kept;
      value[j * s.Dv + d] += weights[j] * kept * gradient[d];
    }
    mean += weights[j] * c;
  }
  double* query = sums->query.data() + ((head.b * s.Hq + head.h * s.Hq / s.H) * s.T + i) * s.Dk;
  double* key = sums->key.data() + (head.b * s.Hk + head.h * s.Hk / s.H) * s.S * s.Dk;
  for (int64_t j = 0; j < s.S; ++j) {
    const double score = head.rule.scale * weights[j] * (change[static_cast<size_t>(j)] - mean);
    if (!head.sees(i, j)) continue;
    sums->key_bias[static_cast<size_t>((head.b * s.H + head.h) * s.S + j)] += score;
    for (int64_t d = 0; d < s.Dk; ++d) {
      query[d] += score * head.key(j)[d];
      key[j * s.Dk + d] += score * head.query(i)[d];
    }
  }
}

}  // namespace

ReferenceGradients reference_backward(const AttentionSizes& s, const AttentionRule& rule,
                                      const AttentionInputs<float>& in, HeadsView<const float> out_gradient) {
  const ReferenceResult forward = reference_forward(s, rule, in);
  ReferenceGradients sums;
  sums.query.resize(static_cast<size_t>(s.B * s.Hq * s.T * s.Dk));
  sums.key.resize(static_cast<size_t>(s.B * s.Hk * s.S * s.Dk));
  sums.value.resize(static_cast<size_t>(s.B * s.Hv * s.S * s.Dv));
  sums.key_bias.resize(static_cast<size_t>(s.B * s.H * s.S));
  for (int64_t row = 0; row < s.B * s.H * s.T; ++row) {
    const OneHead head{s, rule, in, row / (s.H * s.T), row / s.T % s.H};
    const int64_t i = row % s.T;
    backward_row(head, i, forward.weights.data() + row * s.S, out_gradient.at(head.b, head.h) + i * out_gradient.row,
                 &sums);
  }
  return sums;
}

}  // namespace headshare::kernels
