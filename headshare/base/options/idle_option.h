// An idle option changes nothing beside the others: a user who sets one believes that it matters.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace headshare {

struct IdleOption {
  std::string name;  // "decay-steps"
  std::string why;   // "does nothing with --schedule cosine"
};

using IdleOptions = std::vector<IdleOption>;

inline void append(IdleOptions* options, IdleOptions more) {
  for (IdleOption& one : more) options->push_back(std::move(one));
}

}  // namespace headshare
