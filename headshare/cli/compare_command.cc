// headshare compare: the same model, once per attention scheme and seed; the paper's table on the
// user's own text, on a diagnostic task, or of encoders fine-tuned on benchmarks.
#include <algorithm>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"
#include "headshare/base/format.h"
#include "headshare/cli/args.h"
#include "headshare/cli/compare_run.h"
#include "headshare/cli/compare_tuned.h"
#include "headshare/cli/comparison_table.h"
#include "headshare/cli/exit_codes.h"
#include "headshare/cli/interrupt.h"
#include "headshare/cli/resume.h"
#include "headshare/cli/table.h"
#include "headshare/cli/terminal.h"
#include "headshare/cli/train_task.h"
#include "headshare/cli/verbs.h"
#include "headshare/compare/experiment.h"
#include "headshare/compare/variants.h"

namespace headshare {
namespace {

// Task and preset come first and everything else on top of them, wherever they stand. False: --help.
bool begin_with_preset(const Words& words, CompareCommand* command) {
  CompareCommand probe;
  Arguments arguments = probe.arguments();
  const bool help = arguments.parse_for_help(words);
  if (!help) arguments.parse(words);
  command->comparison = preset_options(probe.comparison.task, probe.comparison.preset);
  return !help || command->arguments().parse(words);
}

Words quoted(const Words& words) {
  Words safe;
  for (const std::string& word : words) {
    const bool plain =
        word.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:+") ==
        std::string::npos;
    std::string text = "'";
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    safe.push_back(plain && !word.empty() ? word : text + "'");
  }
  return safe;
}

std::string command_line(const Words& words) {
  std::string line = "headshare compare";
  for (const std::string& word : quoted(words)) line += " " + word;
  return line;
}

// What a comparison on text trains, as `train` has it: of fine-tuned encoders what comes first. Diagnostic tasks train
// decoders too.
TaskOptions text_task(const ComparisonOptions& options) {
  const bool masked = options.task == ComparisonTask::kMaskedLanguageModel || is_fine_tuning(options.task);
  return {.task = masked ? TrainTask::kMaskedLanguageModel : TrainTask::kLanguageModel,
          .language = options.language,
          .masked = options.masked};
}

// As `train` does, and likewise for the tasks that only a comparison has.
void refuse_foreign_options(const ComparisonOptions& options) {
  refuse_foreign_options(text_task(options));
  ComparisonOptions given = options;
  ComparisonOptions untouched = preset_options(options.task, options.preset);
  const nlohmann::json values = to_json(fields(given));
  const nlohmann::json defaults = to_json(fields(untouched));
  const auto changed = [&](const Field& one) { return values.at(one.name) != defaults.at(one.name); };
  for (const Field& one : fields(given.diagnostic)) {
    const std::vector<DiagnosticKind> tasks = tasks_with(one.name);
    const bool mine = is_diagnostic(options.task) &&
                      std::find(tasks.begin(), tasks.end(), diagnostic_kind(options.task)) != tasks.end();
    if (mine || !changed(one)) continue;
    std::string names;
    for (const DiagnosticKind kind : tasks) names += (names.empty() ? "" : " or ") + diagnostic_name(kind);
    throw UsageError(join_text("--", one.name, " belongs to --task ", names, "; this comparison's task is ",
                               values.at("task").get<std::string>()));
  }
  if (!is_diagnostic(options.task)) return;
  Fields model = fields(given.language.model);
  for (const Field& one : fields(given.language)) {
    const bool shared = one.name == "batch-size" || find_field(model, one.name) != nullptr;
    if (shared || !changed(one)) continue;
    throw UsageError(join_text("--", one.name, " is about text, and --task ", values.at("task").get<std::string>(),
                               " makes its own sequences; leave it out"));
  }
  if (values.at("context") != defaults.at("context")) {
    throw UsageError("--context is a text model's; the sequences of a diagnostic task set it (--sequence-length)");
  }
}

// The references must be among what is compared; what is not trained is not fine-tuned either.
void check_references(const ComparisonOptions& options) {
  std::vector<Variant> variants = chosen_variants(options);
  if (is_fine_tuning(options.task)) std::erase_if(variants, [](const Variant& one) { return !is_trained(one.scheme); });
  chosen_references(options, variants);
}

// What the options mean together, before any text is read.
void check_options(const ComparisonOptions& options) {
  as_usage([&] {
    refuse_foreign_options(options);
    check_tuned_options(options);
    check_scheme_steps(options);
    // Of --encoders their own comparison says what they are.
    if (options.fine_tuning.encoders.empty()) check_references(options);
    for (const SweepSetting& setting : sweep_settings(options)) {
      const ComparisonOptions set = with_setting(options, setting);
      learning_rate_at(set.train.schedule, 0, set.train.steps);
      if (is_diagnostic(set.task)) open_experiment(set);  // refuses impossible sizes
      const std::vector<Variant> variants = chosen_variants(set);
      const bool any =
          std::any_of(variants.begin(), variants.end(), [&](const Variant& one) { return why_not(set, one).empty(); });
      HS_CHECK(any, "no scheme can be trained with these options; ", variants.front().name, ": ",
               why_not(set, variants.front()));
    }
  });
}

// What each variant would take; the vocabulary of text is the one the tokenizer is asked for.
ModelOptions likely_model(const ComparisonOptions& options, const Variant& variant) {
  const ComparisonOptions cell = with_variant(options, variant);
  if (is_diagnostic(cell.task)) return open_experiment(cell)->model(cell);
  return likely_model(text_task(cell));
}

std::string plan_text(const ComparisonOptions& options) {
  const std::vector<Variant> variants = chosen_variants(options);
  TextTable table({{.heading = options.variants.empty() ? "scheme" : "variant", .align = Align::kLeft},
                   {.heading = "attention parameters"},
                   {.heading = "total parameters"},
                   {.heading = "cache B/token"}});
  for (const Variant& variant : variants) {
    const std::string reason = why_not(options, variant);
    if (!reason.empty()) {
      table.add_spanning(variant.name, "left out: " + reason);
      continue;
    }
    const ModelSize size = size_of(likely_model(options, variant));
    table.add({variant.name, format_count(static_cast<double>(size.attention_parameters)),
               format_count(static_cast<double>(size.total_parameters)),
               format_count(static_cast<double>(size.cache_bytes_per_token))});
  }
  std::string text =
      table.text(terminal_width(Stream::kOut)) +
      join_text("\n", options.train.steps, " steps each, ", options.seeds, options.seeds == 1 ? " seed" : " seeds");
  const size_t settings = sweep_settings(options).size();
  if (settings > 1) text += join_text(", ", settings, " settings");
  return text + "\n";
}

}  // namespace

int run_compare(const Words& words) {
  CompareCommand command;
  if (!begin_with_preset(words, &command)) return kOk;  // --help
  Arguments arguments = command.arguments();
  arguments.parse(words);
  // Named variants are what is compared, and schemes those that are named beside them.
  if (!command.comparison.variants.empty() && !arguments.given("schemes")) command.comparison.schemes.clear();
  // The preset's vocabulary is for tokenizers that are trained to a size; others refuse one.
  const TokenizerKind tokenizer = command.comparison.language.tokenizer.kind;
  const bool fixed_size = tokenizer == TokenizerKind::kBytes || tokenizer == TokenizerKind::kCharacters;
  if (fixed_size && !arguments.given("vocabulary-size")) command.comparison.language.tokenizer.vocabulary_size.reset();
  if (command.dry_run) {
    check_options(command.comparison);
    const bool fine_tuning = is_fine_tuning(command.comparison.task);
    const bool trained = !command.comparison.fine_tuning.encoders.empty();
    if (!trained) print(plan_text(fine_tuning ? pre_training(command.comparison) : command.comparison));
    if (fine_tuning) print(tuned_plan_text(command.comparison));
    return kOk;
  }
  if (command.resume && command.overwrite) throw UsageError("--resume and --overwrite exclude each other");
  if (command.out.empty()) throw UsageError("--out is missing: where should results.json and the models be kept?");
  if (command.resume) command = resumed_command(words, command.out);
  check_options(command.comparison);
  catch_interrupts();
  try {
    const std::string line = command_line(words);
    const bool fine_tuning = is_fine_tuning(command.comparison.task);
    const Results results = fine_tuning ? compare_tuned(command, line) : compare_trained(command, line);
    command.json ? print_json(to_text(to_json(results))) : print_styled(comparison_text(results));
    return results.failed.empty() ? kOk : kFailure;
  } catch (const Interrupted& stopped) {
    if (!path_exists(fs::path(command.out) / kResolvedFile)) throw;  // nothing was begun
    throw Interrupted(join_text(stopped.what(), "; go on with: headshare compare --resume --out ", command.out));
  }
}

}  // namespace headshare
