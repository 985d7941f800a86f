#include "headshare/compare/comparison_home.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/notice.h"
#include "headshare/base/strings/format.h"
#include "headshare/compare/cell_run.h"
#include "headshare/compare/variants.h"
#include "headshare/models/noted_weights.h"
#include "headshare/ops/tensor_memory.h"
#include "headshare/report/results/results_json.h"
#include "headshare/report/statistics/findings.h"

namespace headshare {
namespace {

constexpr double kSecondsPerDay = 24 * 60 * 60;

std::string models_text(const ComparisonCall& call, const Forecast& forecast) {
  return join_text(call.options.until_decided > 0 ? "up to " : "", forecast.models,
                   forecast.models == 1 ? " model" : " models");
}

// Calls `check` with every cell that an earlier call finished.
void for_finished(const std::vector<CellPlan>& plans, const fs::path& home,
                  const std::function<void(const CellPlan& plan, const Cell& cell)>& check) {
  for (const CellPlan& plan : plans) {
    const std::optional<Cell> cell = finished_cell(home, plan.key);
    if (cell) check(plan, *cell);
  }
}

// Returns what an earlier call found; nothing where it wrote no results.
std::optional<Results> earlier_results(const fs::path& home) {
  const fs::path file = home / "results.json";
  if (!path_exists(file)) return std::nullopt;
  return read_results(file,
                      "it is damaged, or was never finished. If the data are still the same, move it away, and "
                      "--resume writes it again from " +
                          (home / "cells").string());
}

// Returns the commands that made the results: the call that began them, and the calls that went on with other schemes
// or seeds.
std::string commands_so_far(const ComparisonCall& call) {
  const std::optional<Results> before = call.resume ? earlier_results(call.out) : std::nullopt;
  if (!before) return call.line;
  return call.adds ? before->command + "\n" + call.line : before->command;
}

}  // namespace

OutputMark comparison_mark(const fs::path& home) {
  return OutputMark(
      home, {.verb = "compare",
             .what = "a comparison",
             .names = {kResolvedFile, "cells", kPlanFolder, kJobsFolder, "results.json", "results.csv", "cells.csv",
                       "tasks.csv", "report.html", "table.tex", "tokenizer.json", kTeacherFile},
             .unmistakable = {kKeptInputs}});
}

void check_directory(const ComparisonCall& call) {
  const OutputMark mark = comparison_mark(call.out);
  mark.check();
  for (const char* name : {kPlanFolder, kJobsFolder}) {  // an earlier headshare did not give these names
    HS_CHECK(!mark.begun() || mark.owns(name) || !path_exists(call.out / name), (call.out / name).string(),
             " exists and does not belong to the comparison, which an earlier headshare began: it would be lost; move ",
             "it, or choose another --out");
  }
  const bool begun = path_exists(call.out / "cells") || path_exists(call.out / "results.json") ||
                     path_exists(call.out / kEncoders / kResolvedFile);
  HS_CHECK(call.resume || call.overwrite || !begun, call.out.string(),
           " holds a comparison already; --resume continues it, --overwrite deletes it, or choose another --out");
}

void check_same_data(const fs::path& home, const Subject& subject) {
  const std::optional<Results> before = earlier_results(home);
  if (!before) return;
  const Subject& was = before->subject;
  const bool hashed = !was.fingerprint.empty();
  const bool known = hashed && was.fingerprint == subject.fingerprint && was.encoders == subject.encoders;
  HS_CHECK(known || was.data == subject.data, "the data of ", home.string(), " changed since it was begun: it was (",
           was.data, ") and is (", subject.data, "); use another --out, or --overwrite");
  HS_CHECK(known || !hashed, "the data of ", home.string(), " changed since it was begun, though not in size (",
           subject.data, "); use another --out, or --overwrite");
}

void check_same_variants(const fs::path& home, const std::vector<Variant>& variants) {
  const std::optional<Results> before = earlier_results(home);
  if (!before) return;
  for (const std::string& name : variant_names(*before)) {
    const Variant was = variant_of(*before, name);
    const Variant* now = find_variant(variants, name);
    HS_CHECK(now == nullptr || *now == was, "the variant ", name, " of ", home.string(), " was ", was.options.dump(),
             " and cannot become ", now == nullptr ? "" : now->options.dump(), "; give it another name");
  }
}

void check_same_models(const std::vector<CellPlan>& plans, const Experiment& experiment, const fs::path& home) {
  for_finished(plans, home, [&](const CellPlan& plan, const Cell& cell) {
    const nlohmann::json planned = option_values(experiment.model(plan.options));
    for (const auto& [name, value] : planned.items()) {
      if (!cell.options.contains(name)) continue;  // of format 2, or older than the option
      const nlohmann::json& was = cell.options.at(name);
      HS_CHECK(was == value, name_of(plan.key), " was trained with --", name, " ", was.dump(),
               " and would now be with ", value.dump(), "; give --", name, " ", was.dump(), ", or use another --out");
    }
  });
}

void check_same_widths(const std::vector<CellPlan>& plans, const Experiment& experiment, const fs::path& home) {
  for_finished(plans, home, [&](const CellPlan& plan, const Cell& cell) {
    const int64_t width = *experiment.model(plan.options).common().feed_forward_width;
    HS_CHECK(cell.size.feed_forward_width == width,
             "with these schemes --match parameters makes the feed-forward part of ", plan.key.variant, " ", width,
             " wide, and it was trained with ", cell.size.feed_forward_width,
             "; leave --schemes as it was, or use another --out");
  });
}

std::string time_text(const Forecast& forecast) {
  const int threads = at::get_num_threads();
  const double seconds = forecast.seconds;
  const bool clock = seconds >= 60 && seconds < 2 * kSecondsPerDay;
  const char* unit = !clock ? "" : seconds < 3600 ? " minutes" : " hours";  // the unit of "4:10" and "2:04:10"
  const bool several = forecast.at_once > 1;
  return join_text("about ", format_duration(seconds), unit,
                   several ? join_text(", ", forecast.at_once, " at a time") : "", " on ", threads,
                   threads == 1 ? " thread" : " threads", several ? " each" : "");
}

Forecast with_several_at_once(Forecast forecast, const ComparisonCall& call) {
  forecast.at_once = std::clamp<size_t>(forecast.models, 1, call.at_once);
  forecast.seconds /= static_cast<double>(forecast.at_once);
  return forecast;
}

void check_time(const ComparisonCall& call, const Forecast& forecast) {
  HS_CHECK(call.beyond_a_day || forecast.seconds <= kSecondsPerDay, "training ", models_text(call, forecast),
           " would take ", time_text(forecast), ", longer than a day; take fewer --steps, --seeds or --schemes, a ",
           "smaller --preset, or start it all the same with --beyond-a-day");
}

std::string seeds_caveat(const ComparisonOptions& options) {
  if (options.until_decided > 0) return "";  // seeds are added until it is decided
  return plan_caveat(trainable_variants(options).size(), static_cast<size_t>(options.seeds));
}

void say_forecast(const ComparisonCall& call, const Forecast& forecast) {
  constexpr double kSoon = 5;
  notice("data: " + forecast.data);
  if (forecast.seconds > kSoon) {
    notice(join_text("training ", models_text(call, forecast), ": ", time_text(forecast)));
  }
  const std::string caveat = seeds_caveat(call.options);
  if (!caveat.empty()) notice(caveat);
}

fs::path finished_home(const ComparisonCall& call) { return call.resume ? call.out : fs::path(); }

void begin_anew(const ComparisonCall& call, KeptInputs& kept, ComparisonHost& host, Encoders encoders) {
  // A process that still works on a cell of the earlier comparison learns from the missing plan that it is overtaken,
  // so the plan goes first. Numbers of leases only grow.
  if (comparison_mark(call.out).owns(kPlanFolder)) discard(call.out / kPlanFolder / kPlanFile);
  std::vector<std::string> names = kept.names();
  names.emplace_back(kPlanFolder);
  comparison_mark(call.out).clear(names);
  // Without the mark of a comparison a folder of this name is the user's own.
  const bool ours = comparison_mark(call.out / kEncoders).begun();
  if (ours && encoders == Encoders::kForgotten) discard(call.out / kEncoders);
  go_on(call, kept, host);
}

void go_on(const ComparisonCall& call, KeptInputs& kept, ComparisonHost& host) {
  comparison_mark(call.out).set();
  const std::string& teacher = call.options.own<TextOptions>().distillation.teacher;
  if (!teacher.empty()) note_weights(call.out, find_checkpoint(teacher), kTeacherFile);
  kept.keep();
  host.write_resolved(call);
}

Results begin_results(const ComparisonCall& call, const Subject& subject, const std::vector<Variant>& variants,
                      ComparisonHost& host) {
  ComparisonOptions copy = call.options;
  return {.subject = subject,
          .match = match_name(copy.match),
          .command = commands_so_far(call),
          .environment = host.environment(),
          .options = to_json(fields(copy)),
          .variants = variants,
          .references = chosen_references(copy, variants)};
}

void run_cells(const ComparisonCall& call, const std::vector<CellPlan>& plans, ComparisonHost& host, Results* results) {
  release_tensor_memory();              // the timed steps kept it, and the models' own processes need it
  for (const CellPlan& plan : plans) {  // nobody works in the folder of a finished cell
    remove_partials(cell_home(call.out, plan.key));
    remove_partials(cell_home(call.out, plan.key) / "checkpoints");
  }
  host.run_cells(call, plans, results);
}

}  // namespace headshare
