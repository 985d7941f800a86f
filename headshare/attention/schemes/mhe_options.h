// This header holds the options of MHE-ADD and MHE-MUL.
#pragma once

#include <optional>

namespace headshare {

// Both schemes read these; mhe_add's record has them.
struct MheOptions {
  std::optional<double> deviation = {};  // head embeddings start from N(0, this^2); default 0.02, mhe_mul 0.5
};

struct MheMulOptions {
  double offset = 1;  // mhe_mul multiplies by (offset + embedding): 1 or 0
};

}  // namespace headshare
