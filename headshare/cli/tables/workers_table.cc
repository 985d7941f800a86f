#include "headshare/cli/tables/workers_table.h"

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/base/strings/wrap.h"
#include "headshare/cli/terminal/table.h"

namespace headshare {
namespace {

// Tells why a step has no share for so many workers; "" where it has.
std::string no_share(const SchemeCost& cost, int64_t workers, const DataParallelOptions& options) {
  const int64_t context = cost.model.common().context;
  const int64_t sequences = *options.step_tokens / context;
  if (workers <= std::max<int64_t>(1, sequences)) return "";
  return join_text("a step of ", *options.step_tokens, " tokens has ", sequences, " sequences of ", context,
                   ", fewer than workers");
}

SharedModel sizes_of(const SchemeCost& cost) {
  return {.parameters = cost.size.total_parameters, .embedding = cost.size.embedding_parameters};
}

int64_t most_that_pay(const SchemeCost& cost, const DataParallelOptions& options) {
  return most_workers_that_pay(sizes_of(cost), cost.model.common().context, options);
}

std::string name_of(const SchemeCost& cost) {
  return cost.scheme + (cost.sweep_value.empty() ? "" : " " + cost.sweep_value);
}

std::string workers_assumptions(const DataParallelOptions& o) {
  std::string text =
      join_text("A step of ", *o.step_tokens, " tokens; one worker trains ", *o.speed, " tokens/s, whatever the scheme",
                o.update_time > 0 ? join_text(", and moves the parameters in ", o.update_time, " ms") : "",
                "; it sends ", *o.bandwidth, " Gbit/s; a message takes ", o.latency, " microseconds, and a sum 2 ",
                o.all_reduce == AllReduce::kRing ? "(N - 1)" : "log2(N)", " messages one after another.");
  return text +
         " Waiting is what the backward pass does not hide. Memory is that of weights, gradients, moments and "
         "buckets, without activations. Sharded: with --shard-optimizer. Workers pay while each gives at least half of "
         "what it gives alone.";
}

void add_rows(const SchemeCost& cost, const DataParallelOptions& options, TextTable* table) {
  const std::string name = name_of(cost);
  for (const int64_t workers : options.workers) {
    if (const std::string reason = no_share(cost, workers, options); !reason.empty()) {
      table->add_spanning(name, join_text(workers, " workers: ", reason));
      continue;
    }
    const WorkerCost one = worker_cost(sizes_of(cost), workers, options);
    table->add({name, std::to_string(workers), format_fixed(one.seconds, 3), format_fixed(one.waiting, 3),
                percent_text(one.efficiency), format_bytes(one.bytes), format_fixed(one.sharded_seconds, 3),
                format_bytes(one.sharded_bytes)});
  }
  table->add_spanning(name, join_text("pays up to ", most_that_pay(cost, options), " workers"));
}

}  // namespace

std::string workers_text(const std::vector<SchemeCost>& costs, const DataParallelOptions& options, int width) {
  TextTable table({{"scheme", Align::kLeft},
                   {"workers"},
                   {"step, s"},
                   {"waiting, s"},
                   {"efficiency"},
                   {"memory of a worker"},
                   {"sharded step, s"},
                   {"sharded memory"}});
  for (const SchemeCost& one : costs) {
    if (one.impossible.empty()) add_rows(one, options, &table);
  }
  return wrap(workers_assumptions(options), width, 0) + "\n\n" + table.text(width);
}

void add_workers(const SchemeCost& cost, const DataParallelOptions& options, nlohmann::ordered_json* to) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const int64_t workers : options.workers) {
    if (!no_share(cost, workers, options).empty()) continue;
    const WorkerCost one = worker_cost(sizes_of(cost), workers, options);
    list.push_back({{"workers", workers},
                    {"step_seconds", one.seconds},
                    {"waiting_seconds", one.waiting},
                    {"efficiency", one.efficiency},
                    {"worker_bytes", one.bytes},
                    {"sharded_step_seconds", one.sharded_seconds},
                    {"sharded_worker_bytes", one.sharded_bytes}});
  }
  (*to)["workers"] = list;
  (*to)["workers_that_pay"] = most_that_pay(cost, options);
}

}  // namespace headshare
