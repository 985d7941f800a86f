// Grouped-query and multi-query attention: the heads of a group get one key and one value map
// (docs/mathematics.md#shared-heads).
#include "headshare/convert/share/sharing_problem.h"

namespace headshare {

void fill_pooled(const SharingProblem& problem, const SharingTask& task, SchemeFiller* filler) {
  const int64_t groups = problem.target().scheme == "mqa" ? 1 : *problem.target().groups;
  const HeadSlices heads = problem.scores();
  const int64_t rank = problem.target().rotary ? 1 : problem.width();  // for each frequency one pair of columns
  const SharedMaps scores = pooled(heads, groups, rank, task.pooling);
  problem.set_query(scores.query, filler);
  problem.set_key("key", scores.key, filler);
  problem.set_values(pooled(problem.values(), groups, problem.width(), task.pooling), filler);
}

}  // namespace headshare
