// This header holds the options of multi-head latent attention.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace headshare {

struct MlaOptions {
  int64_t latents = 1;                       // g, each of which H / g heads read
  std::optional<int64_t> kv_latent = {};     // R; default 4 D / g, together at most half of the model width
  std::optional<int64_t> query_latent = {};  // width of compressed queries; default: queries are not compressed
  std::optional<int64_t> content = {};       // Dn, what a head compares besides what turns; default D
  std::optional<int64_t> turned = {};        // Dr; default the even number from D / 2 on, under rotary positions
  bool kv_norm = true;  // c is normed; without it c is a linear map of the input, as trained heads can be rewritten
  std::vector<int64_t> layer_kv_latents =
      {};  // R of each layer of a model, where they differ; kv_latent is the largest
};

}  // namespace headshare
