// One side of heads that add constants to a shared map, as parameters.
#pragma once

#include <string>

#include "headshare/convert/collaborative/fill_scheme.h"
#include "headshare/convert/collaborative/layer_problem.h"

namespace headshare {

// Sets the projection `name` to the shared map [F, E, d], weighed by `moments` about the mean, and the parameter
// `constants_name` [H, D] to the heads' constants [F, H, d], which count from the mean input; an undefined one has
// none. A bias of the projection takes up what the constants have in common.
void set_added_side(const std::string& name, const std::string& constants_name, const Tensor& map,
                    const Tensor& constants, const Moments* moments, SchemeFiller* filler);

}  // namespace headshare
