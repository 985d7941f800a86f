// headshare compare trains the same model once per attention scheme and seed, and makes one table of quality and cost:
// on the user's own text, on a diagnostic task, or of encoders fine-tuned on benchmarks.
#include "headshare/base/error.h"
#include "headshare/base/json/json_text.h"
#include "headshare/base/strings/shell_word.h"
#include "headshare/cli/arguments/resumable.h"
#include "headshare/cli/compare/command_line_host.h"
#include "headshare/cli/compare/compare_arguments.h"
#include "headshare/cli/compare/compare_plan.h"
#include "headshare/cli/compare/planned_text.h"
#include "headshare/cli/tables/comparison_table.h"
#include "headshare/cli/terminal/exit_codes.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/compare/check_comparison.h"
#include "headshare/compare/method.h"
#include "headshare/compare/variants.h"
#include "headshare/host/engine.h"
#include "headshare/host/model_input.h"
#include "headshare/report/results/results_json.h"
#include "headshare/report/statistics/results_file.h"
#include "headshare/tasks/start_from.h"

namespace headshare {
namespace {

std::string command_line(const Words& words) {
  std::string line = "headshare compare";
  for (const std::string& word : words) line.append(" ").append(shell_word(word));
  return line;
}

// --overwrite deletes the cells of an earlier comparison, and the teacher may be one of them.
void refuse_teacher_in_out(const CompareCommand& command) {
  const std::string& teacher = command.comparison.own<TextOptions>().distillation.teacher;
  if (!teacher.empty()) refuse_model_in_out("teacher", find_checkpoint(teacher), command.out);
}

// Refuses options that exclude each other and options that would change nothing: a user who sets one believes that it
// matters.
void refuse_idle_options(const Arguments& arguments, const ComparisonOptions& options) {
  if (!options.own<TextOptions>().distillation.given())
    arguments.refuse_idle(options_of_teachers(), "needs --teacher MODEL");
  as_usage([&] { check_comparison(options); });
  if (arguments.asked("scheme-steps")) as_usage([&] { check_asked_scheme_steps(options); });
  const IdleOptions idle = as_usage([&] { return idle_options(options); });
  arguments.refuse_idle(idle);
  const SweepSetting setting = sweep_settings(options).front();
  std::vector<std::string> swept;
  for (const auto& [name, value] : setting.values) swept.push_back(name);
  refuse_idle_sweep(swept, idle);
}

// Throws UsageError where the user asks for a tokenizer of another kind than the teacher's.
void keep_tokenizer_of_teacher(const Arguments& arguments, const CompareCommand& command) {
  const auto given = [&](const std::string& name) { return arguments.given(name); };
  as_usage([&] { keep_to_teacher(given, command.comparison.own<TextOptions>()); });
}

// Fills in what follows from the options that were typed and from those that were not.
void complete(const Arguments& arguments, CompareCommand* command) {
  ComparisonOptions& options = command->comparison;
  if (options.until_decided > 0 && !arguments.given("seeds")) {
    options.seeds = static_cast<int64_t>(kFewestToJudge);  // enough to begin with
  }
  // Named variants are what is compared, and schemes those that are named beside them.
  if (!options.variants.empty() && !arguments.given("schemes")) options.schemes.clear();
  // The preset's vocabulary is for tokenizers that cut words to pieces. Bytes and characters refuse one, and with as
  // few words a quarter of a text would be unknown, which is easy to predict.
  const TokenizerKind kind = options.own<TextOptions>().tokenizer.kind;
  const bool pieces =
      kind == TokenizerKind::kBpe || kind == TokenizerKind::kWordPiece || kind == TokenizerKind::kSentencePiece;
  if (!pieces && !arguments.given("vocabulary-size")) options.own<TextOptions>().tokenizer.vocabulary_size.reset();
}

int compare(const CompareCommand& command, const Words& words) {
  ComparisonCall call = command.call(command_line(words));
  CommandLineHost host(command);
  try {
    const Results results = headshare::compare(call, host);
    print_result(
        command.json, [&] { return to_text(results_file(results)); },
        [&] { print_styled(comparison_text(results) + "\nReport: " + (call.out / "report.html").string() + "\n"); });
    return results.failed.empty() ? kOk : kFailure;
  } catch (const Planned& planned) {
    print_result(
        command.json, [&] { return json_text(planned_json(planned), 2) + "\n"; },
        [&] { print(planned_text(planned, call.out)); });
    return kOk;
  }
}

// --plan names the directory, too. A call that only plans starts no engine.
void take_plan(const Arguments& typed, CompareCommand* command) {
  as_usage([&] { cells_at_once(command->engine()); });
  if (command->plan.empty()) return;
  for (const char* other : {"out", "workers", "devices", "dry-run"}) {
    if (typed.given(other)) {
      throw UsageError(join_text("--plan names the directory and trains nothing; leave --", other, " out"));
    }
  }
  command->out = command->plan;
}

}  // namespace

int run_compare(const Words& words) {
  CompareCommand asked;
  Arguments typed = arguments_of(asked);
  typed.read(words);
  // Task and preset come first and everything else on top of them, wherever they stand.
  CompareCommand command;
  command.comparison = preset_options(asked.comparison.task, asked.comparison.preset, asked.comparison);
  Arguments arguments = arguments_of(command);
  if (!arguments.repeat(typed)) return kOk;
  take_plan(typed, &command);
  check_dry_run(command, "comparison");
  complete(arguments, &command);
  if (!command.resume) {
    keep_tokenizer_of_teacher(arguments, command);
    refuse_idle_options(arguments, command.comparison);
  }
  if (command.dry_run) {
    catch_interrupts();
    print_result(
        command.json, [&] { return json_text(plan_json(command), 2) + "\n"; }, [&] { print(plan_text(command)); });
    return kOk;
  }
  check_resume(command);
  if (command.out.empty()) throw UsageError("--out is missing: where should results.json and the models be kept?");
  if (!command.resume) as_usage([&] { refuse_teacher_in_out(command); });
  if (command.resume) {
    command = resumed_command(typed, command.out);
    take_plan(typed, &command);
    as_usage([&] { check_comparison(command.comparison); });
  }
  catch_interrupts();
  return work_resumably(command, [&] { return compare(command, words); });
}

}  // namespace headshare
