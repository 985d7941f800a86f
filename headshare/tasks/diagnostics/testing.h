// For tests only: this header draws sequences of diagnostic tasks.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "headshare/base/rng.h"
#include "headshare/data/text/batcher.h"
#include "headshare/tasks/diagnostics/diagnostic.h"

namespace headshare {

struct Sequence {
  std::vector<int64_t> inputs;   // [T]
  std::vector<int64_t> targets;  // [outputs, T]

  bool operator==(const Sequence&) const = default;
};

inline Sequence draw_sequence(const SequenceGenerator& generator, uint64_t key) {
  const auto length = static_cast<size_t>(generator.length());
  Sequence drawn{.inputs = std::vector<int64_t>(length, -1),
                 .targets = std::vector<int64_t>(length * static_cast<size_t>(generator.outputs()), kIgnoredTarget)};
  Philox random(key);
  generator.fill(random, drawn.inputs, drawn.targets);
  return drawn;
}

// Checks what holds for every task, over many streams: equal streams give equal sequences, tokens lie in the
// vocabulary, there are as many targets as promised.
inline void expect_sound(const DiagnosticOptions& options, const std::function<void(const Sequence&)>& check) {
  const auto generator = make_generator(options);
  for (uint64_t key = 0; key < 300; ++key) {
    SCOPED_TRACE(key);
    const Sequence drawn = draw_sequence(*generator, key);
    EXPECT_EQ(drawn, draw_sequence(*generator, key));
    int64_t targets = 0;
    for (const int64_t token : drawn.inputs) ASSERT_TRUE(token >= 0 && token < generator->vocabulary()) << token;
    for (const int64_t token : drawn.targets) {
      if (token == kIgnoredTarget) continue;
      ASSERT_TRUE(token >= 0 && token < generator->vocabulary()) << token;
      ++targets;
    }
    EXPECT_EQ(targets, generator->targets_per_sequence());
    check(drawn);
  }
}

}  // namespace headshare
