// Draws the same numbers as headshare does for a tensor of that name, and puts them in a tensor.
#include <ATen/ATen.h>

#include <iostream>
#include <span>

#include "headshare/base/format.h"
#include "headshare/base/rng.h"

int main() {
  headshare::Philox random(headshare::stream_key(/*seed=*/1, "block.0.attention.query"));
  at::Tensor values = at::empty({4, 8}, at::kDouble);  // [T, D]
  for (double& value : std::span(values.data_ptr<double>(), values.numel())) value = random.normal();
  std::cout << values.sizes() << ", " << headshare::format_bytes(values.nbytes()) << ", mean "
            << values.mean().item<double>() << "\n";
}
