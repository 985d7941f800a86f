// This file in the directory of a run names the launch of several processes that began it.
#pragma once

namespace headshare {

inline constexpr const char* kLaunchFile = ".launch";

}  // namespace headshare
