#include "headshare/cli/compare/compare_arguments.h"

#include <ATen/Parallel.h>

#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/base/placeholder.h"
#include "headshare/cli/arguments/resume.h"
#include "headshare/cli/inputs/task_paths.h"

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

Arguments CompareCommand::arguments() {
  Arguments made("compare",
                 "Trains the same model once per attention scheme and seed, and prints one table of quality and cost.");
  made.group("Comparison",
             {naming_directory(field("out", &out, "directory for results.json, report.html and the models",
                                     {.aliases = {"output-dir"}})),
              field("resume", &resume, "go on with the comparison in --out; finished models are not trained again"),
              field("overwrite", &overwrite, "delete the comparison in --out first"),
              field("dry-run", &dry_run, "print what would be trained and how long it takes; train nothing"),
              field("beyond-a-day", &beyond_a_day, "start even what is estimated to take longer than a day"),
              field("json", &json,
                    "print results.json instead of the table; with --dry-run the number of models and the seconds"),
              field("latex", &latex, "also write the table in LaTeX, table.tex")});
  // Each family's own options stand together, below what all have.
  Fields shared = fields(comparison);
  std::vector<std::pair<std::string, Fields>> own;
  for (const TaskFamily* family : task_families()) {
    own.emplace_back(family->heading(), family->fields(comparison));
    std::erase_if(shared, [&](const Field& one) { return find_field(own.back().second, one.name) != nullptr; });
  }
  made.group("What is trained", std::move(shared));
  for (auto& [heading, list] : own) {
    if (!list.empty()) made.group(heading, std::move(list));
  }
  made.group("Computing", fields(runtime));
  made.common({"text", "source", "target", "task", "schemes", "preset", "seeds", "until-decided", "steps",
               "learning-rate", "sweep", "out", "dry-run", "resume"});
  made.example("compare --text book.txt --seeds 3 --out comparison", "every scheme on your own text, in minutes");
  made.example("compare --task offsets --schemes mha,sha,mhe_mul --seeds 3 --out offsets",
               "three schemes on a task that needs several heads, without data");
  made.example(
      "compare --task translation --source train.de --target train.en --validation-source valid.de --validation-target "
      "valid.en --test-source test.de --test-target test.en --out pairs",
      "the paper's second table of your own pairs");
  made.note(
      "Every model is trained in a process of its own, one after another, on the same batches in the same order, "
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

CompareCommand resumed_command(const Words& words, const std::string& out) {
  CompareCommand began;
  Arguments first = began.arguments();
  parse_begun(&first, out);
  CompareCommand command;
  Arguments arguments = command.arguments();
  parse_resumed(&arguments, words, out);
  for (CompareCommand* one : {&began, &command}) make_paths_whole(&one->comparison);
  const nlohmann::json before = to_json(fields(began.comparison));
  const nlohmann::json now = to_json(fields(command.comparison));
  // Finished models are taken over, so that what they were trained with must not change. Schemes, variants and seeds
  // only add models, and references only compare them in another way.
  refuse_changed(before, now,
                 {"schemes", "variants", "seeds", "peop", "reference", "peop-reference", "until-decided", "max-seeds"},
                 "the comparison");
  command.adds = before != now;
  // Speeds and the last bits of losses are those of a number of threads, and the report names one for all.
  const auto& threads = began.runtime.threads;
  if (threads && threads != command.runtime.threads) {
    const auto& given = command.runtime.threads;
    throw UsageError(join_text("the comparison was begun with --threads ", *threads, " and cannot go on with ",
                               given ? std::to_string(*given) : "auto", "; leave --threads out, or use another --out"));
  }
  return command;
}

ComparisonCall CompareCommand::call(const std::string& line) const {
  return {.out = out,
          .resume = resume,
          .overwrite = overwrite,
          .beyond_a_day = beyond_a_day,
          .adds = adds,
          .latex = latex,
          .line = line,
          .options = comparison};
}

void write_resolved(CompareCommand command, const fs::path& home) {
  // Facts of this call alone; where it went would stand in the way of repeating it.
  command.overwrite = command.resume = command.json = command.latex = false;
  command.out = CompareCommand().out;
  command.runtime.threads = at::get_num_threads();  // results repeat for a number of threads
  make_paths_whole(&command.comparison);
  command.arguments().write_resolved(home / kResolvedFile);
}

}  // namespace headshare
