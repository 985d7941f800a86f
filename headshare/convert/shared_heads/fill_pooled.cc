// Grouped-query and multi-query attention: the heads of a group get one key and one value map
// (docs/mathematics.md#shared-heads).
#include "headshare/attention/schemes/gqa.h"
#include "headshare/base/error.h"
#include "headshare/convert/shared_heads/conversions.h"
#include "headshare/convert/shared_heads/sharing_problem.h"

namespace headshare {
namespace {

void fill_groups(int64_t groups, const SharingProblem& problem, const SharingTask& task, SchemeFiller* filler) {
  const HeadSlices heads = problem.scores();
  const int64_t rank = problem.target().rotary ? 1 : problem.width();  // for each frequency one pair of columns
  const SharedMaps scores = pooled(heads, groups, rank, task.pooling);
  problem.set_query(scores.query, filler);
  problem.set_key("key", scores.key, filler);
  problem.set_values(pooled(problem.values(), groups, problem.width(), task.pooling), filler);
}

// A conversion to layers with `groups` groups of heads.
ConversionRecord pooling_conversion(const std::string& scheme, int64_t (*groups)(const AttentionOptions&)) {
  return {.scheme = scheme,
          .fill = [groups](const SharingProblem& problem, const SharingTask& task,
                           SchemeFiller* filler) { fill_groups(groups(problem.target()), problem, task, filler); },
          .groups = groups};
}

void set_groups(int64_t groups, AttentionOptions* target) {
  HS_CHECK(target->heads % groups == 0, groups, " groups do not divide the layer's ", target->heads,
           " heads; write gqa: and a divisor of ", target->heads);
  target->own.get<GqaOptions>().groups = groups;
}

// Every number of groups between one for each head and one for all.
std::vector<int64_t> numbers_of_groups(const AttentionOptions& source) {
  std::vector<int64_t> all;
  for (int64_t groups = source.heads / 2; groups >= 2; --groups) {
    if (source.heads % groups == 0) all.push_back(groups);
  }
  return all;
}

}  // namespace

ConversionRecord gqa_conversion() {
  ConversionRecord record = pooling_conversion("gqa", groups_of);
  record.size = ConversionSize{.name = "groups",
                               .what = "number of groups",
                               .value = [](const AttentionOptions& o) { return o.own.get<GqaOptions>().groups; },
                               .set = set_groups,
                               .worth_trying = numbers_of_groups};
  return record;
}

ConversionRecord mqa_conversion() {
  return pooling_conversion("mqa", [](const AttentionOptions&) -> int64_t { return 1; });
}

}  // namespace headshare
