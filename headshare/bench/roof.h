// A roof is the most that a device does of one kind of work in a second. It is measured in turns with what it bounds:
// the share of the roof that a contender reaches says how much a faster one could gain.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <vector>

#include "headshare/bench/timing.h"
#include "headshare/ops/precision.h"

namespace headshare {

enum class RoofKind {
  kProduct,  // floating-point operations of a product of two square matrices: libtorch's, or on the CPU the faster of
             // libtorch's and headshare's (ops/product.h)
  kStream,   // bytes that STREAM's copy and triad (McCalpin, 1995) read and write, by libtorch's passes
};

struct RoofOptions {
  RoofKind kind = RoofKind::kProduct;
  Precision precision = Precision::kFp32;  // of the matrices
  c10::Device device = c10::Device(c10::kCPU);
  bool small = false;  // shows that it works, not how fast
};

// A way is one piece of work that measures a roof. The fastest of its ways is the roof.
struct RoofWay {
  double work = 0;  // operations or bytes of a turn
  std::function<void()> run;
};

// Returns the product, or copy and triad. Their matrices and vectors are larger than the caches of the device.
std::vector<RoofWay> roof_ways(const RoofOptions& options);

// Returns the most work a second that any way reached in its shortest turn; `timings` has one for each way.
double roof_of(const std::vector<RoofWay>& ways, const std::vector<Timing>& timings);

// Rate is what a contender does in a second, beside the roof of the same turns.
struct Rate {
  RoofKind kind = RoofKind::kProduct;
  double per_second = 0;  // by the median
  double roof = 0;

  double percent() const { return roof > 0 ? 100 * per_second / roof : 0; }
};

}  // namespace headshare
