// headshare bench: how fast this machine computes attention, against libtorch's own kernels in the same process.
#include <ATen/Parallel.h>

#include "headshare/base/format.h"
#include "headshare/base/nearest.h"
#include "headshare/bench/attention_bench.h"
#include "headshare/bench/attention_grid.h"
#include "headshare/cli/interrupt.h"
#include "headshare/cli/machine.h"
#include "headshare/cli/progress.h"
#include "headshare/cli/runtime_options.h"
#include "headshare/cli/table.h"
#include "headshare/cli/terminal.h"
#include "headshare/cli/verbs.h"

namespace headshare {
namespace {

using Json = nlohmann::ordered_json;

struct BenchOptions {
  std::string question;
  bool json = false;
  bool quick = false;
  bool together = false;
  int64_t repetitions = 15;
  double seconds = 1.5;
  AttentionGrid grid;
  std::optional<int64_t> threads;
};

Fields own_fields(BenchOptions& o) {
  return {
      field("json", &o.json, "print a JSON list with one object per case and contender"),
      field("quick", &o.quick, "small sizes and three repetitions: shows that it works, not how fast"),
      field("repetitions", &o.repetitions, "of every contender at most, and at least three", {.min = 3, .max = 10000}),
      field("seconds", &o.seconds, "for a case: after three repetitions no further one once this is over",
            {.min = 0, .max = 3600}),
      field("together", &o.together, "cases take turns with each other, too: their times compare"),
      field("threads", &o.threads, "threads; auto: $OMP_NUM_THREADS, else all cores", {.min = 1, .max = 1024}),
  };
}

// What --quick changes, where nothing else was asked for.
void shrink(const Arguments& arguments, BenchOptions* o) {
  if (!o->quick) return;
  const auto preset = [&](const char* name, auto* target, auto value) {
    if (!arguments.given(name)) *target = value;
  };
  preset("repetitions", &o->repetitions, 3);
  preset("heads", &o->grid.heads, std::vector<int64_t>{4});
  preset("lengths", &o->grid.lengths, std::vector<int64_t>{130});
  preset("head-width", &o->grid.head_width, 16);
  preset("tokens", &o->grid.tokens, 520);
}

Json to_object(const AttentionRow& row, const Json& machine) {
  const AttentionCase& c = row.of;
  const bool timed = row.refused.empty();
  Json object = {{"name", case_name(c)},
                 {"contender", row.contender},
                 {"backend", row.backend},
                 {"median_ms", timed ? Json(row.timing.median_ms) : Json()},
                 {"minimum_ms", timed ? Json(row.timing.minimum_ms) : Json()},
                 {"ratio_to_torch_sdpa", row.ratio ? Json(*row.ratio) : Json()},
                 {"repetitions", row.timing.repetitions},
                 {"is_baseline", row.is_baseline},
                 {"peak_bytes", row.peak_bytes ? Json(*row.peak_bytes) : Json()},
                 {"cache_bytes", row.cache_bytes}};
  if (!timed) object["refused"] = row.refused;
  object.update({{"scheme", scheme_name(c.scheme)},
                 {"pass", pass_name(c.pass)},
                 {"causal", c.causal},
                 {"dropout", c.dropout},
                 {"dropout_masks", c.dropout_mask == DropoutMaskKind::kShared ? "shared" : "per_head"},
                 {"precision", precision_name(c.precision)},
                 {"batch_size", c.batch},
                 {"heads", c.heads},
                 {"queries", c.queries},
                 {"keys", c.keys},
                 {"head_width", c.head_width}});
  if (c.scheme == SchemeKind::kCollaborative) object["key_width"] = c.key_width;
  for (const char* key : {"threads", "instructions", "processor", "torch", "headshare", "commit"}) {
    object[key] = machine[key];
  }
  return object;
}

void print_json(const std::vector<AttentionRow>& rows) {
  const Json machine = describe_machine();
  std::string text = "[";
  for (const AttentionRow& row : rows) text += (text.size() > 1 ? ",\n " : "") + to_object(row, machine).dump();
  print(text + "]\n");
}

void print_table(const std::vector<AttentionRow>& rows) {
  TextTable table({{"case", Align::kLeft},
                   {"contender", Align::kLeft},
                   {"kernel", Align::kLeft},
                   {"median ms"},
                   {"least ms"},
                   {"times as fast as torch"},
                   {"memory of a run"}});
  std::string before;
  for (const AttentionRow& row : rows) {
    const std::string name = case_name(row.of);
    const std::string shown = name == before ? "" : name;
    before = name;
    if (!row.refused.empty()) {
      table.add_spanning(shown, row.contender + " is wrong and was not timed: " + row.refused);
      continue;
    }
    table.add({shown, row.contender, row.backend, format_fixed(row.timing.median_ms, 2),
               format_fixed(row.timing.minimum_ms, 2), row.ratio ? format_fixed(*row.ratio, 2) : "-",
               row.peak_bytes ? format_bytes(static_cast<double>(*row.peak_bytes)) : "-"});
  }
  const Json machine = describe_machine();
  const int width = terminal_width(Stream::kOut);
  print(table.text(width) + "\n" +
        wrap(join_text(machine["processor"].get<std::string>(), ", ", machine["instructions"].get<std::string>(), ", ",
                       machine["threads"].dump(), machine["threads"] == 1 ? " thread" : " threads", ", libtorch ",
                       machine["torch"].get<std::string>(), ", commit ", machine["commit"].get<std::string>(),
                       ". The last ratio compares with the fastest of torch's forms, whose row says 1.00."),
             width, 0) +
        "\n");
}

std::vector<AttentionRow> run_cases(const std::vector<AttentionCase>& cases, const BenchOptions& options) {
  const AttentionBenchOptions bench = {.turns = {.least_rounds = 3,
                                                 .most_rounds = static_cast<int>(options.repetitions),
                                                 .seconds = options.seconds,
                                                 .between = check_interrupted}};
  const size_t size = options.together ? cases.size() : 1;
  ProgressLine line("bench");
  std::vector<AttentionRow> rows;
  for (size_t done = 0; done < cases.size(); done += size) {
    line.update(static_cast<double>(done), static_cast<double>(cases.size()), case_name(cases[done]));
    const auto first = cases.begin() + static_cast<std::ptrdiff_t>(done);
    for (AttentionRow& row : bench_attention({first, first + static_cast<std::ptrdiff_t>(size)}, bench)) {
      if (!row.refused.empty()) print_note(case_name(row.of) + ", " + row.contender + ": " + row.refused);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace

int run_bench(const Words& words) {
  BenchOptions options;
  Arguments arguments("bench",
                      "Measures how fast attention is computed, by headshare and by the libtorch in the same process. "
                      "Every contender's heads and gradients are checked before it is timed.");
  arguments.required("QUESTION", "what to measure: attention", &options.question);
  arguments.group("How to measure", own_fields(options));
  arguments.group("Cases", fields(options.grid));
  arguments.note(
      "Contenders: headshare (the kernel it chooses), torch_sdpa (every head's queries, keys and values lie ready), "
      "and "
      "where keys are shared torch_sdpa_expanded (seen as H heads) and torch_sdpa_gqa (enable_gqa). "
      "ratio_to_torch_sdpa is the fastest torch form's median over the contender's: above 1 is faster than torch.");
  if (!arguments.parse(words)) return kOk;
  if (options.question != "attention") {
    throw UsageError(join_text("headshare bench measures attention, not '", options.question, "'",
                               did_you_mean(options.question, {"attention"})));
  }
  shrink(arguments, &options);
  start_runtime({.device = DeviceChoice::kCpu, .threads = options.threads});
  const std::vector<AttentionCase> cases = as_usage([&] { return cases_of(options.grid); });
  catch_interrupts();
  const std::vector<AttentionRow> rows = run_cases(cases, options);
  if (options.json) {
    print_json(rows);
  } else {
    print_table(rows);
  }
  const bool all_right = std::all_of(rows.begin(), rows.end(), [](const auto& row) { return row.refused.empty(); });
  return all_right ? kOk : kFailure;
}

}  // namespace headshare
