// headshare bench measures how fast this machine computes attention, and the matrix products of a training step,
// against libtorch's own in the same process.
#include <ATen/Parallel.h>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/format.h"
#include "headshare/bench/attention_bench.h"
#include "headshare/bench/attention_grid.h"
#include "headshare/bench/product_bench.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/cli/terminal/progress.h"
#include "headshare/cli/terminal/table.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/host/machine.h"
#include "headshare/host/runtime_options.h"

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

// Sets what --quick changes, where nothing else was asked for.
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

// Adds what every row says of the machine that it was measured on.
void add_machine(const Json& machine, Json* object) {
  for (const char* key : {"threads", "instructions", "processor", "torch", "headshare", "commit"}) {
    (*object)[key] = machine[key];
  }
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
  object.update({{"scheme", c.scheme},
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
  if (scheme_record(c.scheme).shares_key_width) object["key_width"] = c.key_width;
  add_machine(machine, &object);
  return object;
}

Json to_object(const ProductRow& row, const Json& machine) {
  Json object = {{"name", row.of.name},
                 {"contender", row.contender},
                 {"precision", precision_name(row.precision)},
                 {"rows", row.of.M},
                 {"depth", row.of.K},
                 {"columns", row.of.N},
                 {"median_ms", row.timing.median_ms},
                 {"minimum_ms", row.timing.minimum_ms},
                 {"repetitions", row.timing.repetitions},
                 {"gflops", row.gflops}};
  add_machine(machine, &object);
  return object;
}

template <class Row>
void print_objects(const std::vector<Row>& rows) {
  const Json machine = to_json(describe_machine());
  std::string text = "[";
  for (const Row& row : rows) text += (text.size() > 1 ? ",\n " : "") + to_object(row, machine).dump();
  print_json(text + "]\n");
}

void print_with_machine(const TextTable& table, const std::string& note) {
  const Machine machine = describe_machine();
  const int width = terminal_width(Stream::kOut);
  print(table.text(width) + "\n" +
        wrap(join_text(machine.processor, ", ", machine.instructions, ", ", machine.threads,
                       machine.threads == 1 ? " thread" : " threads", ", libtorch ", machine.torch, ", commit ",
                       machine.commit, ". ", note),
             width, 0) +
        "\n");
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
  print_with_machine(table, "The last ratio compares with the fastest of torch's forms, whose row says 1.00.");
}

void print_table(const std::vector<ProductRow>& rows) {
  TextTable table({{"product", Align::kLeft},
                   {"rows x depth x columns", Align::kLeft},
                   {"precision", Align::kLeft},
                   {"headshare GFLOP/s"},
                   {"torch GFLOP/s"},
                   {"times as fast"}});
  for (size_t i = 0; i + 1 < rows.size(); i += 2) {  // headshare, torch
    const ProductCase& c = rows[i].of;
    table.add({c.name, join_text(c.M, " x ", c.K, " x ", c.N), precision_name(rows[i].precision),
               format_fixed(rows[i].gflops, 1), format_fixed(rows[i + 1].gflops, 1),
               format_fixed(rows[i].gflops / rows[i + 1].gflops, 2)});
  }
  print_with_machine(table, "Tiles are what attention multiplies; torch's include what a call of it costs.");
}

TurnOptions turns_of(const BenchOptions& options) {
  return {.least_rounds = 3,
          .most_rounds = static_cast<int>(options.repetitions),
          .seconds = options.seconds,
          .between = check_interrupted};
}

std::vector<ProductRow> run_products(const BenchOptions& options) {
  // The cases are a feed-forward layer and the output layer of GPT-2, for a batch of 4 x 512 tokens.
  const std::vector<ProductCase> cases = options.quick ? product_cases(130, 64, 1000) : product_cases(2048, 768, 50257);
  const std::vector<Precision> precisions = precisions_of(options.grid, product_precision_names());
  ProgressLine line("bench");
  std::vector<ProductRow> rows;
  double done = 0;
  for (const Precision precision : precisions) {
    for (const ProductCase& one : cases) {
      line.update(done++, static_cast<double>(cases.size() * precisions.size()), one.name);
      if (one.tile && precision != Precision::kFp32) continue;  // at::mm rounds its result: not the same work
      for (ProductRow& row : bench_product(one, precision, turns_of(options))) rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::vector<AttentionRow> run_cases(const std::vector<AttentionCase>& cases, const BenchOptions& options) {
  const AttentionBenchOptions bench = {.turns = turns_of(options)};
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

// Refuses options of attention's cases, which say nothing about products.
void refuse_attention_cases(const Arguments& arguments, BenchOptions* options) {
  for (const Field& field : fields(options->grid)) {
    if (field.name == "precisions" || !arguments.given(field.name)) continue;
    throw UsageError(join_text("--", field.name, " is for headshare bench attention; products are those of a GPT-2"));
  }
}

template <class Row>
void print_rows(const std::vector<Row>& rows, bool json) {
  if (json) {
    print_objects(rows);
  } else {
    print_table(rows);
  }
}

int measure_attention(const BenchOptions& options) {
  const std::vector<AttentionCase> cases = as_usage([&] { return cases_of(options.grid); });
  catch_interrupts();
  const std::vector<AttentionRow> rows = run_cases(cases, options);
  print_rows(rows, options.json);
  const bool all_right = std::all_of(rows.begin(), rows.end(), [](const auto& row) { return row.refused.empty(); });
  return all_right ? kOk : kFailure;
}

int measure_products(const BenchOptions& options) {
  as_usage([&] { return precisions_of(options.grid, product_precision_names()); });
  catch_interrupts();
  print_rows(run_products(options), options.json);
  return kOk;
}

}  // namespace

int run_bench(const Words& words) {
  BenchOptions options;
  Arguments arguments(
      "bench",
      "Measures how fast attention is computed, or the matrix products of a training step, by headshare "
      "and by the libtorch in the same process. Every contender's result is checked before it is timed.");
  arguments.required("QUESTION", "what to measure: attention, products", &options.question);
  arguments.group("How to measure", own_fields(options));
  arguments.group("Cases of attention", fields(options.grid));
  arguments.common({"quick", "schemes", "passes", "dropout", "seconds", "threads", "json"});
  arguments.example("bench attention --schemes mha,mhe_add", "both passes, with and without masks and dropout");
  arguments.example("bench attention --quick", "whether it works, in seconds");
  arguments.note(
      "Contenders in attention: headshare (the kernel it chooses), torch_sdpa (every head's queries, keys and values "
      "lie ready), and where keys are shared torch_sdpa_expanded (seen as H heads) and torch_sdpa_gqa (enable_gqa). "
      "ratio_to_torch_sdpa is the fastest torch form's median over the contender's: above 1 is faster than torch. "
      "products takes --precisions from the cases.");
  if (!arguments.parse(words)) return kOk;
  const bool attention = options.question == "attention";
  if (!attention && options.question != "products") {
    throw UsageError(join_text("headshare bench measures attention or products, not ", brief_text(options.question),
                               did_you_mean(options.question, {"attention", "products"})));
  }
  if (!attention) refuse_attention_cases(arguments, &options);
  shrink(arguments, &options);
  // libtorch runs as its users have it: what headshare does about freed memory would help its contenders as well.
  // Decoding reads headshare's own cache, which lies where `generate` has it, for all contenders.
  const bool decoding = attention && options.grid.queries == 1;
  options.grid.device = start_runtime(
      {.device = {.kind = DeviceChoice::Kind::kCpu}, .threads = options.threads, .keep_tensor_memory = decoding});
  return attention ? measure_attention(options) : measure_products(options);
}

}  // namespace headshare
