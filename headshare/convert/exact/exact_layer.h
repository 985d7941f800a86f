// An attention layer as one of another scheme that computes the same, and the reason where there is none
// (docs/mathematics.md#exact-folds).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headshare/convert/collaborative/collaborative.h"
#include "headshare/convert/collaborative/head_maps.h"

namespace headshare {

// An ExactTarget says what a layer becomes.
struct ExactTarget {
  std::string scheme;                  // one of exact_schemes()
  std::optional<int64_t> groups = {};  // of gqa
};

// mha, gqa, mqa, sha and el_lossless.
const std::vector<std::string>& exact_schemes();

// The number of key heads and of value heads that a layer of these options compares with and averages.
struct MemoryHeads {
  int64_t keys = 1, values = 1;
};
MemoryHeads memory_heads(const AttentionOptions& resolved);

// The options, resolved, of the layer that takes the place of `source`, resolved. Its heads have the usual key width
// and scale. Throws Error, naming the option and the way out, for a layer that has no such form whatever its weights.
AttentionOptions exact_options(const AttentionOptions& source, const ExactTarget& to, const NeededBiases& needed);

// Tells whether exact_options() keeps a content bias as one: else it becomes a key dimension where `to` has room for
// it.
bool keeps_content_bias(const AttentionOptions& source, const ExactTarget& to);

// The maps of every head, in double. Value biases stay apart from the output bias, so that a query that sees no key
// still gets neither. Throws Error as head_maps() does.
HeadMaps exact_maps(const Scheme& source, const std::string& layer);

// Tells which biases the target needs for these maps.
NeededBiases exact_biases(const HeadMaps& maps, const AttentionOptions& source, const ExactTarget& to);

// Fills `target`, of exact_options(), in its type. Throws Error, naming `layer` and the heads, where heads that have to
// share a map have different ones.
void fill_exactly(const HeadMaps& maps, const AttentionOptions& source, const std::string& layer, Scheme* target);

}  // namespace headshare
