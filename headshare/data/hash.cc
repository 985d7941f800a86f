#include "headshare/data/hash.h"

// The header holds the whole library: there is nothing to link and nothing to export.
#define XXH_INLINE_ALL
// These hints are off: at -Og (dev and sanitizer presets) GCC refuses its always_inline functions.
#define XXH_NO_INLINE_HINTS 1
#include <fmt/format.h>
#include <xxhash.h>

namespace headshare {

struct ContentHash::State {
  XXH3_state_t hash;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->hash); }

ContentHash::~ContentHash() = default;

void ContentHash::update(const void* data, size_t bytes) { XXH3_128bits_update(&state_->hash, data, bytes); }

std::string ContentHash::hex() const {
  const XXH128_hash_t value = XXH3_128bits_digest(&state_->hash);
  return fmt::format("{:016x}{:016x}", value.high64, value.low64);
}

std::string content_hash(std::string_view text) {
  ContentHash hash;
  hash.update(text);
  return hash.hex();
}

}  // namespace headshare
