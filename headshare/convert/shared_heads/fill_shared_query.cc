// Shared queries: one query and one key map, and a map of each head on the query (docs/mathematics.md#shared-heads).
// Without a map a conversion makes what sha is.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "headshare/attention/schemes/shared_query.h"
#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/convert/shared_heads/added_heads.h"
#include "headshare/convert/shared_heads/added_side.h"
#include "headshare/convert/shared_heads/conversions.h"
#include "headshare/convert/shared_heads/mapped_queries.h"
#include "headshare/convert/shared_heads/sharing_problem.h"

namespace headshare {
namespace {

const SharedQueryOptions& query_options(const AttentionOptions& layer) { return layer.own.get<SharedQueryOptions>(); }

std::string map_text(QueryMap map) { return enum_name(query_map_names(), map); }

std::vector<std::string> map_texts() {
  std::vector<std::string> all;
  for (const auto& [map, name] : query_map_names()) all.push_back(name);
  return all;
}

QueryMap map_of(const std::string& text) {
  for (const auto& [map, name] : query_map_names()) {
    if (name == text) return map;
  }
  throw Error(text + " is no map of queries; choose " + list_text(map_texts(), "or"));
}

// Heads that add a constant to the query are those of MHE-ADD without constants of keys.
void fill_added_query(const SharingProblem& problem, const SharingTask& task, SchemeFiller* filler) {
  const AttentionOptions& target = problem.target();
  const LayerProblem centred(problem.maps(),
                             {.frequencies = target.rotary ? problem.width() / 2 : 0,
                              .query_bias = true,
                              .key_bias = target.rotary && target.projection_bias,
                              .key_about_mean = !target.rotary},
                             task.inputs);
  const HeadSlices slices = centred.slices();
  const AddedHeads added = added_heads(slices, target.d_model, slices.key.size(2));
  const Tensor balance = balancing_factors({added.query.unsqueeze(1), added.key.unsqueeze(1)});  // [F, 1, d]
  const int64_t missing = target.rotary ? 0 : problem.width() - added.query.size(2);  // of heads with narrower keys
  const auto scaled = [missing](const Tensor& x, const Tensor& by) {
    return at::constant_pad_nd(x * by, {0, missing});
  };
  set_added_side("query", "query_map", scaled(added.query, balance.reciprocal()),
                 scaled(added.query_constant, balance.reciprocal()), task.inputs.query, filler);
  problem.set_key("key", scaled(added.key, balance).unsqueeze(1), filler);
}

void set_query_maps(const MappedQueries& queries, QueryMap map, SchemeFiller* filler) {
  if (map == QueryMap::kIdentity) return;
  if (map == QueryMap::kFull) return filler->set("query_map", queries.maps.transpose(1, 2));  // [H, D, C]
  if (map != QueryMap::kLowRank) return filler->set("query_map", numbers_of_maps(queries.maps, map));
  filler->set("query_inner.weight", queries.inner.transpose(1, 2));  // [H, r, D]
  filler->set("query_map", queries.outer);
}

void fill_mapped_query(const SharingProblem& problem, const SharingTask& task, SchemeFiller* filler) {
  const SharedQueryOptions& own = query_options(problem.target());
  const MappedQueries queries =
      mapped_queries(problem.scores(), problem.width(), own, task.decomposition, task.progress);
  const auto size = [](const Tensor& x) { return std::max(at::linalg_vector_norm(x).item<double>(), 1e-140); };
  const double balance = std::sqrt(size(queries.query) / size(queries.key));  // both learn alike then
  problem.set_query((queries.query / balance).unsqueeze(0).unsqueeze(0), filler);
  problem.set_key("key", queries.key * balance, filler);
  set_query_maps(queries, own.map, filler);
}

void fill_shared_query(const SharingProblem& problem, const SharingTask& task, SchemeFiller* filler) {
  if (query_options(problem.target()).map == QueryMap::kBias) {
    fill_added_query(problem, task, filler);
  } else {
    fill_mapped_query(problem, task, filler);
  }
  problem.set_values(shared_values(problem), filler);
}

// The size is the rank of low-rank maps, and of full ones the width of the shared query.
void set_query_size(int64_t size, AttentionOptions* target) {
  SharedQueryOptions& own = target->own.get<SharedQueryOptions>();
  const std::string map = map_text(own.map);
  const bool low_rank = own.map == QueryMap::kLowRank;
  HS_CHECK(low_rank || own.map == QueryMap::kFull, "maps of form ", map, " have no size; leave ", size,
           " out, or choose low_rank with a rank or full with the width of the shared query");
  const int64_t most = low_rank ? *target->head_width : target->d_model;
  HS_CHECK(size >= 1 && size <= most, "shared_query:", map, ":", size, " is not within 1..", most,
           low_rank ? ", the head width; choose a lower rank, or full" : ", the model width; choose a lower width");
  (low_rank ? own.rank : own.width) = size;
}

std::optional<int64_t> query_size(const AttentionOptions& layer) {
  const SharedQueryOptions& own = query_options(layer);
  return own.map == QueryMap::kLowRank ? own.rank : own.width;
}

}  // namespace

ConversionRecord shared_query_conversion() {
  return {.scheme = "shared_query",
          .fill = fill_shared_query,
          .size = ConversionSize{.name = "size", .what = "rank or width", .value = query_size, .set = set_query_size},
          .variants = ConversionVariants{
              .name = "map",
              .all = map_texts(),
              .value = [](const AttentionOptions& o) { return map_text(query_options(o).map); },
              .set = [](const std::string& map,
                        AttentionOptions* target) { target->own.get<SharedQueryOptions>().map = map_of(map); }},
          .iterates = true};
}

}  // namespace headshare
