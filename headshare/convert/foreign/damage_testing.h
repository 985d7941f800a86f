// Tests of readers of binary files damage a file in many ways.
#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <string>

#include "headshare/base/rng.h"

namespace headshare {

// Expects that a file with another byte somewhere is read, or refused with its `name`. `refusal` returns the message
// for a file of these bytes, "no error" without one.
inline void expect_changed_bytes_are_named(const std::string& whole, const std::string& name,
                                           const std::function<std::string(const std::string& bytes)>& refusal) {
  Philox random(stream_key(1, name));
  int refused = 0;
  for (int round = 0; round < 400; ++round) {
    std::string bytes = whole;
    bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    const std::string message = refusal(bytes);
    if (message == "no error") continue;
    EXPECT_THAT(message, testing::HasSubstr(name));
    ++refused;
  }
  EXPECT_GT(refused, 100);
}

}  // namespace headshare
