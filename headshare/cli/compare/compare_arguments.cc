#include "headshare/cli/compare/compare_arguments.h"

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/cli/arguments/resumable.h"

namespace headshare {
namespace {

std::vector<std::string> fine_tuned_tasks() {
  std::vector<std::string> names;
  for (const TaskFamily* family : task_families()) {
    const std::vector<std::string> tasks = family->tasks();
    if (!family->begins_with().empty()) names.insert(names.end(), tasks.begin(), tasks.end());
  }
  return names;
}

}  // namespace

Arguments arguments_of(CompareCommand& command) {
  Arguments made(CompareCommand::kVerb,
                 "Trains the same model once per attention scheme and seed, and prints one table of quality and cost.");
  made.groups(command.groups());
  made.common({"text", "source", "target", "task", "schemes", "preset", "seeds", "until-decided", "steps",
               "learning-rate", "sweep", "out", "dry-run", "resume", "workers"});
  made.example("compare --text book.txt --seeds 3 --out comparison", "every scheme on your own text, in minutes");
  made.example("compare --task offsets --schemes mha,sha,mhe_mul --seeds 3 --out offsets",
               "three schemes on a task that needs several heads, without data");
  made.example(
      "compare --task translation --source train.de --target train.en --validation-source valid.de --validation-target "
      "valid.en --test-source test.de --test-target test.en --out pairs",
      "the paper's second table of your own pairs");
  made.note(
      "Every model is trained in a process of its own, one after another unless --workers says otherwise, on the same "
      "batches in the same order, "
      "with the same initial values for what two schemes share. Figures are those of the test part for the "
      "checkpoint that was best on validation; without a test part with labels, as in most of GLUE, SuperGLUE and "
      "SQuAD, of the validation part, which the report says.");
  made.note(
      "--variants compares any options: --schemes mha --variants wide:scheme=mqa,heads=8,rms:norm=rms trains mha, mqa "
      "with 8 heads, and mha with RMS norms.");
  made.note(
      join_text("With --task ", list_text(fine_tuned_tasks(), "or"),
                " one encoder a scheme is pre-trained, or taken from --encoders, and fine-tuned on every task with "
                "each of the --seeds. The options of `headshare finetune` begin with finetune- here; those without "
                "it are of pre-training."));
  made.note(
      "PRR is the share of mha's quality a scheme keeps: 100 M / M_mha, for perplexities 100 (2 - M / M_mha). PEoP "
      "is the relative gain over sha per relative growth in attention parameters.");
  return made;
}

CompareCommand resumed_command(const Arguments& typed, const std::string& out) {
  // Finished models are taken over, so that what they were trained with must not change. Schemes, variants and seeds
  // only add models, and references only compare them in another way.
  const std::set<std::string> free = {"schemes",        "variants",  "seeds",   "peop",         "reference",
                                      "peop-reference", "max-seeds", "out",     "resume",       "until-decided",
                                      "overwrite",      "dry-run",   "json",    "beyond-a-day", "latex",
                                      "device",         "threads",   "workers", "devices",      "plan"};
  Resumed<CompareCommand> both = resumed<CompareCommand>(typed, out, {.free = free, .what = "the comparison"});
  CompareCommand& command = both.command;
  command.adds = to_json(fields(both.began.comparison)) != to_json(fields(command.comparison));
  // Speeds and the last bits of losses belong to a number of threads, and the report names one for all.
  const std::optional<int64_t>& threads = both.began.runtime.threads;
  if (threads && threads != command.runtime.threads) {
    const std::optional<int64_t>& wanted = command.runtime.threads;
    throw UsageError(join_text("the comparison was begun with --threads ", *threads, " and cannot go on with ",
                               wanted ? std::to_string(*wanted) : "auto",
                               "; leave --threads out, or use another --out"));
  }
  return command;
}

}  // namespace headshare
