// The size of each layer of a conversion, such as the latent width of mla, within the limit that a user gives.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace headshare {

// A layer's errors at each size from 0 on: squared, and absolute.
struct ErrorsBySize {
  std::vector<double> scores, values;
};

// Both unset: every layer has the size that the scheme's options say.
struct SizeChoice {
  std::optional<int64_t> mean = {};      // layers get more or less, where errors fall most
  std::optional<double> max_error = {};  // the narrowest layers whose relative errors are within it, about
};

// The sizes of layers with these errors. A mean is a budget for all layers: from the least size on, the layer grows
// whose squared errors fall most, scores as shares of the energy of all layers' scores and values likewise. Absolute
// errors count, because softmax and the residual stream see those. Throws Error, with both numbers, for a mean above
// the full size.
std::vector<int64_t> sizes_of_layers(const std::vector<ErrorsBySize>& layers, const SizeChoice& choice);

}  // namespace headshare
