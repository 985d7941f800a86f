// This header holds the options of shared queries.
#pragma once

#include <cstdint>
#include <optional>

#include "headshare/base/options/field.h"

namespace headshare {

// This names the map that makes a head's query of what all heads share.
enum class QueryMap {
  kIdentity,  // q
  kBias,      // q + b_h
  kDiagonal,  // q * (1 + d_h)
  kComplex,   // pairs (i, i + D/2) of q times the complex numbers of m_h
  kBlocks,    // pairs of q times the 2 x 2 matrices of h
  kLowRank,   // q + (q U_h) B_h
  kFull,      // q W_h
};

const EnumNames<QueryMap>& query_map_names();

struct SharedQueryOptions {
  QueryMap map = QueryMap::kFull;
  std::optional<int64_t> rank = {};   // r of kLowRank; default a quarter of the head width
  std::optional<int64_t> width = {};  // C of the shared query under kFull; default the head width
};

}  // namespace headshare
