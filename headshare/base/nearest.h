// "Did you mean ...?": the nearest of the known names to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headshare {

// Insertions, deletions, substitutions and swaps of neighbours that lead from one to the other, in bytes.
int edit_distance(std::string_view a, std::string_view b);

// The known name nearest to `name`, or "" when none is near (more than a third of the letters differ).
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

// "; did you mean 'x'?" or "" when nothing is near: appended to the errors about unknown names.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

}  // namespace headshare
