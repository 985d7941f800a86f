#include "headshare/base/options/nearest.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "headshare/base/options/canonical_name.h"

namespace headshare {

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1), above, two_above;
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    two_above = std::exchange(above, row);
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substituted = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substituted});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return row[b.size()];
}

namespace {

// Tells whether `longer` is `shorter` and more words.
bool has_first_words(std::string_view longer, std::string_view shorter) {
  return !shorter.empty() && longer.size() > shorter.size() + 1 && longer.starts_with(shorter) &&
         longer[shorter.size()] == '-';
}

// Returns the only known name that has the same first words; "" where there are several.
std::string of_the_same_words(std::string_view name, const std::vector<std::string>& known) {
  std::string found;
  for (const std::string& candidate : known) {
    const std::string other = canonical_name(std::string(candidate));
    if (!has_first_words(name, other) && !has_first_words(other, name)) continue;
    if (!found.empty()) return "";
    found = candidate;
  }
  return found;
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  constexpr size_t kLongestCompared = 100;  // beyond this nobody mistyped a name of ours
  constexpr size_t kLettersPerSlip = 6;
  if (name.size() > kLongestCompared) return "";
  const std::string plain = canonical_name(std::string(name));
  std::string best;
  int best_distance =
      static_cast<int>(std::min(name.size() / kLettersPerSlip + 2, name.size()));  // one letter is right
  for (const std::string& candidate : known) {
    const int distance = edit_distance(plain, canonical_name(std::string(candidate)));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best.empty() ? of_the_same_words(plain, known) : best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(name, known);
  return nearest.empty() ? "" : " (did you mean '" + nearest + "'?)";
}

}  // namespace headshare
