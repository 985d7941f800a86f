// Finds the nearest of the known names to a mistyped one, for "did you mean ...?".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace headshare {

// Counts the insertions, deletions, substitutions and swaps of neighbours that lead from one to the other, in bytes.
int edit_distance(std::string_view a, std::string_view b);

// Returns the known name nearest to `name`: one that differs in a letter or two, three in long names; else the only one
// of which `name` has the first words ("match" for "match-time"), or that begins with it. "" when none is near. Case,
// and '-' or '_', are no difference.
std::string nearest_name(std::string_view name, const std::vector<std::string>& known);

// Returns " (did you mean 'x'?)", or "" when nothing is near: stands behind an unknown name. A sentence may go on after
// it.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

}  // namespace headshare
