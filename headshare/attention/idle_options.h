// Options of schemes that layers of other schemes do not read.
#pragma once

#include <string>
#include <vector>

#include "headshare/base/options/idle_option.h"

namespace headshare {

// Lists the options that none of these schemes reads, although another scheme does: setting one changes nothing in a
// model whose layers have these schemes. Throws Error for an unknown scheme.
IdleOptions idle_scheme_options(const std::vector<std::string>& schemes);

}  // namespace headshare
