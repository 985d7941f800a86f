// headshare bench measures how fast this machine, or a card of it, computes attention, decodes against long caches and
// takes training steps, against libtorch's own attention and products in the same process.
#include <algorithm>
#include <set>

#include "headshare/base/json/json_input.h"
#include "headshare/base/options/nearest.h"
#include "headshare/bench/attention_bench.h"
#include "headshare/bench/attention_grid.h"
#include "headshare/bench/product_bench.h"
#include "headshare/bench/step_bench.h"
#include "headshare/cli/tables/bench_tables.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/cli/terminal/progress.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/host/runtime_options.h"

namespace headshare {
namespace {

struct BenchOptions {
  std::string question;
  bool json = false;
  bool quick = false;
  bool together = false;
  int64_t repetitions = 15;
  double seconds = 1.5;
  AttentionGrid grid;
  StepGrid step;
  DeviceChoice device = {.kind = DeviceChoice::Kind::kCpu};
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
      device_field("device", &o.device, "where to compute; a card is waited for before and after every turn"),
      field("threads", &o.threads, "threads; auto: $OMP_NUM_THREADS, else all cores", {.min = 1, .max = 1024}),
  };
}

// Sets what a question or --quick changes, where nothing else was asked for.
class Presets {
 public:
  explicit Presets(const Arguments& arguments) : arguments_(arguments) {}

  template <class T, class Value>
  void set(const char* name, T* target, Value value) const {
    if (!arguments_.given(name)) *target = std::move(value);
  }

 private:
  const Arguments& arguments_;
};

void attention_presets(const Presets& presets, BenchOptions* o) {
  if (!o->quick) return;
  presets.set("heads", &o->grid.heads, std::vector<int64_t>{4});
  presets.set("lengths", &o->grid.lengths, std::vector<int64_t>{130});
  presets.set("head-width", &o->grid.head_width, 16);
  presets.set("tokens", &o->grid.tokens, 520);
}

// One new token of each sentence reads a long cache. The times of all schemes are to be compared.
void decode_presets(const Presets& presets, BenchOptions* o) {
  attention_presets(presets, o);
  o->together = true;
  o->grid.queries = 1;
  o->grid.passes = {"forward"};
  o->grid.masks = {"causal"};
  o->grid.dropout = {"0"};
  presets.set("schemes", &o->grid.schemes, std::vector<std::string>{"mha", "gqa", "mqa", "mhe_add", "mhe_mul", "mla"});
  presets.set("lengths", &o->grid.lengths, std::vector<int64_t>{o->quick ? 256 : 8192});
  presets.set("batch-size", &o->grid.batch_size, o->quick ? 2 : 8);
  presets.set("seconds", &o->seconds, 6);
}

void step_presets(const Presets& presets, BenchOptions* o) {
  attention_presets(presets, o);
  presets.set("schemes", &o->grid.schemes, std::vector<std::string>{"mha", "mqa", "mhe_add", "mhe_mul"});
  if (!o->quick) return;
  presets.set("lengths", &o->grid.lengths, std::vector<int64_t>{32});
  presets.set("tokens", &o->grid.tokens, 64);
  presets.set("layers", &o->step.layers, 1);
  presets.set("vocabulary", &o->step.vocabulary, 300);
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
  AttentionBenchOptions bench{.turns = turns_of(options)};
  bench.small_roofs = options.quick;
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

std::vector<StepRow> run_steps(const std::vector<StepCase>& cases, const BenchOptions& options) {
  const size_t size = options.together ? cases.size() : 1;
  ProgressLine line("bench");
  std::vector<StepRow> rows;
  for (size_t done = 0; done < cases.size(); done += size) {
    line.update(static_cast<double>(done), static_cast<double>(cases.size()), case_name(cases[done]));
    const auto first = cases.begin() + static_cast<std::ptrdiff_t>(done);
    for (StepRow& row : bench_steps({first, first + static_cast<std::ptrdiff_t>(size)},
                                    {.turns = turns_of(options), .small_roofs = options.quick})) {
      if (!row.refused.empty()) print_note(case_name(row.of) + ": " + row.refused);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

template <class Row>
void print_rows(const std::vector<Row>& rows, const BenchOptions& options) {
  if (options.json) {
    print_json(bench_json(rows, options.grid.device));
  } else {
    print(bench_text(rows, options.grid.device, terminal_width(Stream::kOut)));
  }
}

// Returns the exit code: a contender that is wrong is a failure.
template <class Row>
int print_judged(const std::vector<Row>& rows, const BenchOptions& options) {
  print_rows(rows, options);
  const bool all_right = std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.refused.empty(); });
  return all_right ? kOk : kFailure;
}

int measure_attention(const BenchOptions& options) {
  const std::vector<AttentionCase> cases = as_usage([&] { return cases_of(options.grid); });
  catch_interrupts();
  return print_judged(run_cases(cases, options), options);
}

int measure_steps(const BenchOptions& options) {
  const std::vector<StepCase> cases = as_usage([&] { return step_cases_of(options.grid, options.step); });
  catch_interrupts();
  return print_judged(run_steps(cases, options), options);
}

int measure_products(const BenchOptions& options) {
  as_usage([&] { return precisions_of(options.grid, product_precision_names()); });
  catch_interrupts();
  print_rows(run_products(options), options);
  return kOk;
}

struct Question {
  std::string name;
  std::set<std::string> options;  // of the cases, that it takes
  void (*presets)(const Presets& presets, BenchOptions* options);
  int (*measure)(const BenchOptions& options);
};

const std::vector<Question>& questions() {
  static const std::vector<Question> all = {
      {"attention",
       {"schemes", "passes", "masks", "dropout", "dropout-masks", "precisions", "heads", "lengths", "queries",
        "head-width", "key-widths", "tokens", "batch-size"},
       attention_presets,
       measure_attention},
      {"decode",
       {"schemes", "precisions", "heads", "lengths", "head-width", "key-widths", "tokens", "batch-size"},
       decode_presets,
       measure_attention},
      {"step",
       {"schemes", "precisions", "heads", "lengths", "head-width", "tokens", "batch-size", "layers", "vocabulary"},
       step_presets,
       measure_steps},
      {"products", {"precisions"}, [](const Presets& /*presets*/, BenchOptions* /*options*/) {}, measure_products},
  };
  return all;
}

// Lists the questions that take an option, or all for "".
std::vector<std::string> questions_with(const std::string& option) {
  std::vector<std::string> names;
  for (const Question& one : questions()) {
    if (option.empty() || one.options.contains(option)) names.push_back(one.name);
  }
  return names;
}

const Question& question_of(const BenchOptions& options) {
  for (const Question& one : questions()) {
    if (one.name == options.question) return one;
  }
  const std::vector<std::string> names = questions_with("");
  throw UsageError(join_text("headshare bench measures ", list_text(names), ", not ", brief_text(options.question),
                             did_you_mean(options.question, names)));
}

// Refuses options of the cases that say nothing about this question.
void refuse_other_cases(const Arguments& arguments, const Question& question, BenchOptions* options) {
  Fields all = fields(options->grid);
  for (Field& field : fields(options->step)) all.push_back(std::move(field));
  for (const Field& field : all) {
    if (question.options.contains(field.name) || !arguments.given(field.name)) continue;
    throw UsageError(join_text("--", field.name, " is for headshare bench ", list_text(questions_with(field.name)),
                               ", not for ", question.name, "; leave it out"));
  }
  if (question.name == "products" && options->device.may_be_cuda() && arguments.given("device")) {
    throw UsageError("the products of headshare bench products are those of the CPU; leave --device out");
  }
}

}  // namespace

int run_bench(const Words& words) {
  BenchOptions options;
  Arguments arguments(
      "bench",
      "Measures how fast headshare computes attention, decodes, takes training steps, or multiplies matrices, beside "
      "libtorch in the same process and the most that the device can do. Every contender's result is checked before it "
      "is timed.");
  arguments.required("QUESTION", "what to measure: attention, decode, step, products", &options.question);
  arguments.group("How to measure", own_fields(options));
  arguments.group("Cases", fields(options.grid));
  arguments.group("Models of step", fields(options.step));
  arguments.common({"quick", "schemes", "passes", "dropout", "seconds", "device", "threads", "json"});
  arguments.example("bench attention --schemes mha,mhe_add", "both passes, with and without masks and dropout");
  arguments.example("bench decode", "the next token against a cache of 8,192 tokens, all schemes in turns");
  arguments.example("bench step --device cuda --precisions bf16 --layers 12 --lengths 1024 --batch-size 16",
                    "training steps of GPT-2 small on a card");
  arguments.example("bench attention --quick", "whether it works, in seconds");
  arguments.note(
      "Contenders in attention and decode: headshare (the kernel it chooses), torch_sdpa (every head's queries, keys "
      "and values lie ready), and where keys are shared torch_sdpa_expanded (seen as H heads) and torch_sdpa_gqa "
      "(enable_gqa). On a card each of them once more with each of libtorch's kernels that takes it: _flash, "
      "_efficient, _cudnn, _math. ratio_to_torch_sdpa is the fastest torch form's median over the contender's: above 1 "
      "is faster than torch.");
  arguments.note(
      "The rate stands beside the roof that takes turns with the contenders: floating-point operations (gflops) beside "
      "a square matrix product in the same precision (product_gflops, percent_of_product); of decode also bytes of the "
      "cache, read once, (gb_per_s) beside STREAM's copy or triad (stream_gb_per_s, percent_of_stream). Every "
      "contender is credited with the operations of heads that share nothing. A step has six for each token and each "
      "weight of a matrix, and those of attention.");
  if (!arguments.parse(words)) return kOk;
  const Question& question = question_of(options);
  refuse_other_cases(arguments, question, &options);
  if (options.quick) Presets(arguments).set("repetitions", &options.repetitions, 3);
  question.presets(Presets(arguments), &options);
  // libtorch runs as its users have it: what headshare does about freed memory would help its contenders as well.
  // Decoding reads headshare's own cache, which lies where `generate` has it, for all contenders; a step is
  // headshare's.
  const bool keeps = options.grid.queries == 1 || question.name == "step";
  options.grid.device =
      start_runtime({.device = options.device, .threads = options.threads, .keep_tensor_memory = keeps});
  return question.measure(options);
}

}  // namespace headshare
