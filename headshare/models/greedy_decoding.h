// A GreedyDecoding decodes one sequence greedily with a cache, so that it can be timed for any kind of model.
#pragma once

#include <cstdint>

namespace headshare {

class GreedyDecoding {
 public:
  virtual ~GreedyDecoding() = default;

  // Returns the number of tokens that the cache holds at the end.
  virtual int64_t length() const = 0;

  // Begins anew with a cache of length() tokens, the first `tokens` of which are filled.
  virtual void begin(int64_t tokens) = 0;

  // Writes the likeliest token behind the others.
  virtual void step() = 0;

  // Returns once everything is computed; a GPU answers only then.
  virtual void wait() = 0;
};

}  // namespace headshare
