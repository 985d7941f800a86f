#include "headshare/bench/roof.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/ops/product.h"

namespace headshare {
namespace {

constexpr double kFloatBytes = 4;

// A card needs larger matrices than a CPU to be busy.
int64_t product_size(const RoofOptions& o) {
  if (o.small) return 64;
  return o.device.is_cpu() ? 1024 : 8192;
}

// A vector on the CPU takes 128 MiB, and one on a card 1 GiB: several times the last cache.
int64_t stream_length(const RoofOptions& o) {
  if (o.small) return 1 << 12;
  return o.device.is_cpu() ? 1 << 25 : 1 << 28;
}

std::vector<RoofWay> product_ways(const RoofOptions& o) {
  const int64_t size = product_size(o);
  const auto type = o.precision == Precision::kBf16 ? at::kBFloat16 : at::kFloat;
  const at::TensorOptions like = at::TensorOptions(o.device).dtype(type);
  const Tensor a = at::rand({size, size}, like), b = at::rand({size, size}, like);
  Tensor c = at::empty({size, size}, like);
  const auto n = static_cast<double>(size);
  const double work = 2 * n * n * n;
  std::vector<RoofWay> ways = {{.work = work, .run = [a, b, c]() mutable { at::mm_out(c, a, b); }}};
  if (o.device.is_cpu()) {  // MKL uses AVX2 on AMD's processors with AVX-512
    const Tensor sums = at::empty({size, size}, like.dtype(at::kFloat));
    ways.push_back({.work = work, .run = [a, b, sums] { multiply(a, b, sums); }});
  }
  return ways;
}

std::vector<RoofWay> stream_ways(const RoofOptions& o) {
  const int64_t length = stream_length(o);
  const auto vector = [&](double value) { return at::full({length}, value, at::TensorOptions(o.device)); };
  Tensor a = vector(0);
  const Tensor b = vector(1), c = vector(2);
  const double bytes = kFloatBytes * static_cast<double>(length);
  return {{.work = 2 * bytes, .run = [a, b]() mutable { a.copy_(b); }},
          {.work = 3 * bytes, .run = [a, b, c]() mutable { at::add_out(a, b, c, 3); }}};
}

}  // namespace

std::vector<RoofWay> roof_ways(const RoofOptions& options) {
  const at::NoGradGuard no_grad;
  return options.kind == RoofKind::kProduct ? product_ways(options) : stream_ways(options);
}

double roof_of(const std::vector<RoofWay>& ways, const std::vector<Timing>& timings) {
  HS_DCHECK(ways.size() == timings.size());
  double most = 0;
  for (size_t i = 0; i < ways.size(); ++i) most = std::max(most, 1000 * ways[i].work / timings[i].minimum_ms);
  return most;
}

}  // namespace headshare
