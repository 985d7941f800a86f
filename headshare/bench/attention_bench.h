// Times attention cases: every contender is checked, then all of them take turns.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headshare/bench/attention_contender.h"
#include "headshare/bench/roof.h"
#include "headshare/bench/timing.h"

namespace headshare {

struct AttentionRow {
  AttentionCase of;
  std::string contender;
  std::string backend;
  bool is_baseline = false;
  std::string refused = {};                // why it was not timed; empty when it was
  Timing timing = {};                      // zeros when refused
  std::optional<double> ratio = {};        // how many times as fast as the fastest baseline of its case
  std::optional<int64_t> peak_bytes = {};  // of one run, above what the process had on the case's device before
  int64_t cache_bytes = 0;                 // bytes that a key/value cache of this case took from the allocator
  Rate rate = {};  // decoding: bytes of the cache, read once, beside STREAM; else operations_of() beside a product
  std::optional<Rate> arithmetic = {};  // decoding: operations_of() beside a product, which may bound it instead
};

struct AttentionBenchOptions {
  TurnOptions turns;
  std::function<std::vector<Contender>(const CaseInputs&)> contenders = [](const CaseInputs& in) {
    return make_contenders(in);
  };
  bool small_roofs = false;  // RoofOptions::small
};

// Times the cases of one group, which take turns with each other as well, so that their times compare (decoding); they
// are on one device. The roofs of their kinds of work take turns with them. A contender that fails its check is refused
// with the reason and not timed.
std::vector<AttentionRow> bench_attention(const std::vector<AttentionCase>& group,
                                          const AttentionBenchOptions& options);

}  // namespace headshare
