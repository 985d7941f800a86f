// headshare evaluate scores a model on text.
#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/json/json_text.h"
#include "headshare/base/strings/format.h"
#include "headshare/cli/inputs/reading_progress.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/data/text/splits.h"
#include "headshare/host/runtime_options.h"
#include "headshare/tasks/family.h"
#include "headshare/tasks/translation/translation_options.h"

namespace headshare {
namespace {

enum class ScoredPart { kAll, kTrain, kValidation, kTest };

const EnumNames<ScoredPart>& part_names() {
  static const EnumNames<ScoredPart> names = {{ScoredPart::kAll, "all"},
                                              {ScoredPart::kTrain, "train"},
                                              {ScoredPart::kValidation, "validation"},
                                              {ScoredPart::kTest, "test"}};
  return names;
}

struct EvaluateOptions {
  std::string model_path;
  DataOptions data;
  ScoredPart part = ScoredPart::kAll;
  std::optional<int64_t> context;
  std::optional<int64_t> batch_size;
  TaskOptions task;
  bool json = false;
  RuntimeOptions runtime;
};

Fields own_fields(EvaluateOptions& o) {
  return {
      field("part", &o.part, "what to score: all of --text, or the part of it that training held out", part_names(),
            {.aliases = {"split"}}),
      field("context", &o.context, "tokens the model sees at once; auto: the model's context",
            {.min = 1, .max = 1 << 24, .aliases = {"block-size"}}),
      field("batch-size", &o.batch_size,
            "windows at once; auto: as many as keep the logits below 256 MiB and fit into memory, up "
            "to 32",
            {.min = 1, .max = 1 << 20, .aliases = {"per-device-eval-batch-size"}}),
      field("json", &o.json, "print one JSON object"),
  };
}

TokenData open_part(const EvaluateOptions& options, const Tokenizer& tokenizer) {
  ProgressLine line("text");
  if (options.part == ScoredPart::kAll) {
    HS_CHECK(!options.data.text.empty(), "--text is missing: which text is to be scored?");
    return open_tokens(options.data.text, options.data, tokenizer, show_reading(line));
  }
  const TextSplits splits = open_splits(options.data, tokenizer, show_reading(line));
  if (options.part == ScoredPart::kTrain) return splits.train;
  const TokenData part = options.part == ScoredPart::kValidation ? splits.validation : splits.test;
  const char* name = options.part == ScoredPart::kValidation ? "validation" : "test";
  HS_CHECK(!part.empty(), "there is no ", name, " part: give --", name, "-text or a --", name, "-fraction above 0");
  return part;
}

// Adds the options of the families that score models, each under its heading.
void add_scoring_options(TaskOptions& options, Arguments* arguments) {
  for (const TaskFamily* family : task_families()) {
    Fields own = family->scoring_fields(options);
    if (!own.empty()) arguments->group(family->heading(), std::move(own));
  }
}

// Returns the family whose models are like this one. Throws UsageError for an option of another family's.
const TaskFamily& family_of(const EvaluateOptions& options, const Arguments& arguments) {
  const ModelOptions model = read_options(find_checkpoint(options.model_path));
  const TaskFamily& mine = scoring_family(model);
  TaskOptions copy = options.task;
  for (const TaskFamily* other : task_families()) {
    if (other == &mine) continue;
    for (const Field& one : other->scoring_fields(copy)) {
      if (!arguments.given(one.name)) continue;
      throw UsageError(join_text("--", one.name, " is about models of --task ", list_text(other->tasks(), "or"),
                                 "; the kind of this model is ", model.kind().name()));
    }
  }
  HS_CHECK(mine.learns_from_text() || options.data.text.empty(),
           "--text is for models that read text; this one learns ", mine.learns(), ": give --",
           mine.scoring_fields(copy).front().name, " instead");
  return mine;
}

// Throws UsageError for options that would change nothing for this model and part.
void refuse_idle_options(const Arguments& arguments, EvaluateOptions options, const TaskFamily& mine) {
  const ModelOptions model = read_options(find_checkpoint(options.model_path));
  const std::string task = mine.task_of(model);
  for (const Field& one : mine.scoring_fields(options.task)) {
    const std::vector<std::string> tasks = mine.tasks_with(one.name);
    if (std::find(tasks.begin(), tasks.end(), task) != tasks.end()) continue;
    arguments.refuse_idle({one.name}, join_text("is about models of --task ", list_text(tasks, "or"),
                                                ", and this is one of --task ", task));
  }
  if (!mine.learns_from_text()) {
    std::vector<std::string> about_text = {"part"};
    for (const Field& one : fields(options.data)) about_text.push_back(one.name);
    arguments.refuse_idle(about_text, "is about texts, and this model learns " + mine.learns());
    if (options.task.own<TranslationTaskOptions>().beam.beam == 1) {
      arguments.refuse_idle({"length-penalty"}, "chooses among several hypotheses, and --beam is 1");
    }
  } else if (options.part == ScoredPart::kAll) {
    arguments.refuse_idle({"validation-text", "test-text", "validation-fraction", "test-fraction"},
                          "names a part, and all of --text is scored (--part all)");
  }
}

}  // namespace

int run_evaluate(const Words& words) {
  EvaluateOptions options;
  Arguments arguments(
      "evaluate",
      "Scores a model on text: a decoder by perplexity, and bits per byte where the tokenizer is "
      "lossless; an encoder by its loss at masked tokens and pseudo-perplexity; an encoder-decoder by "
      "its loss on the references of sentences, and BLEU and chrF of its translations; an image classifier by "
      "its accuracy.");
  arguments.required("MODEL", "a checkpoint or run directory", &options.model_path);
  arguments.group("Scoring", own_fields(options));
  add_scoring_options(options.task, &arguments);
  arguments.group("Text", fields(options.data));
  arguments.group("Computing", fields(options.runtime));
  arguments.common({"text", "part", "test-fraction", "validation-fraction", "context", "stride", "batch-size", "json"});
  arguments.example("evaluate run --text book.txt --part test --test-fraction 0.1", "the part that training held out");
  arguments.example("evaluate run --text other.txt --stride 32", "another text, each token with more before it");
  arguments.example("evaluate run --source test.de --target test.en", "a model that translates");
  arguments.example("evaluate run --images mnist", "an image classifier, on the test images");
  if (!arguments.parse(words)) return kOk;
  catch_interrupts();
  const c10::Device device = start_runtime(options.runtime);
  const TaskFamily& family = family_of(options, arguments);
  refuse_idle_options(arguments, options, family);
  std::optional<ProgressLine> line;  // from the first window on: its time left is that of scoring
  const auto show = [&line](int64_t done, int64_t total) {
    check_interrupted();
    if (!line) line.emplace("evaluating");
    line->update(static_cast<double>(done), static_cast<double>(total));
  };
  const TextScores scores =
      family.score({.model = options.model_path,
                    .device = device,
                    .open = [&](const Tokenizer& tokenizer) { return open_part(options, tokenizer); },
                    .context = options.context,
                    .batch_size = options.batch_size,
                    .progress = show},
                   options.task);
  line.reset();
  check_scores(scores, options.model_path);
  print_result(
      options.json, [&] { return json_text(scores.object, 2) + "\n"; }, [&] { print(scores.text); });
  return kOk;
}

}  // namespace headshare
