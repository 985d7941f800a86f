// A comparison has a directory: these functions check what an earlier call left there and what may join it, and begin.
#pragma once

#include "headshare/base/files/output_mark.h"
#include "headshare/compare/comparison_call.h"
#include "headshare/data/text/kept_input.h"

namespace headshare {

// Encoders that are then fine-tuned are pre-trained in this folder of the comparison's directory.
inline constexpr const char* kEncoders = "encoders";

// This folder of the comparison's directory holds the plans of the cells, and the leases of whoever works on them.
inline constexpr const char* kPlanFolder = "plan";
inline constexpr const char* kJobsFolder = "jobs";     // of engines that leave logs
inline constexpr const char* kPlanFile = "plan.json";  // lists them

// Returns the mark of a directory that `compare` writes. Encoders are a comparison of their own below it, with a mark
// of their own.
OutputMark comparison_mark(const fs::path& home);

// Throws Error for a directory that holds something else than a comparison, and for a comparison that is neither to be
// gone on with nor overwritten.
void check_directory(const ComparisonCall& call);

// Throws Error when an earlier call learned from other data: two experiments would stand in one table.
void check_same_data(const fs::path& home, const Subject& subject);

// Throws Error when a name stands for other options than before.
void check_same_variants(const fs::path& home, const std::vector<Variant>& variants);

// Throws Error when a finished model was made with other options than the plan would make it with: a default may have
// changed since.
void check_same_models(const std::vector<CellPlan>& plans, const Experiment& experiment, const fs::path& home);

// Throws Error when the feed-forward parts of finished models have another width than matching parameters gives them
// now: with other schemes the largest model may be another one.
void check_same_widths(const std::vector<CellPlan>& plans, const Experiment& experiment, const fs::path& home);

// Returns the forecast of a call that runs several cells at a time.
Forecast with_several_at_once(Forecast forecast, const ComparisonCall& call);

// Throws Error for a comparison of more than a day, unless --beyond-a-day allows it.
void check_time(const ComparisonCall& call, const Forecast& forecast);

// Says what a comparison of so few seeds cannot decide; "" where they are enough, or more are added until it is
// decided.
std::string seeds_caveat(const ComparisonOptions& options);

// Says what a comparison that begins learns from, how long it will take and what its seeds cannot decide.
void say_forecast(const ComparisonCall& call, const Forecast& forecast);

// Returns the time and the number of threads as text: "about 4:10 on 2 threads", "about 2:05, 2 at a time on 1 thread
// each".
std::string time_text(const Forecast& forecast);

// Returns the directory that may have finished cells; "" unless the call goes on with an earlier comparison.
fs::path finished_home(const ComparisonCall& call);

// begin_anew() forgets an earlier comparison, its encoders too unless they are kept, and writes down what this one is:
// its mark, its inputs, its options.
enum class Encoders { kForgotten, kKept };
void begin_anew(const ComparisonCall& call, KeptInputs& kept, ComparisonHost& host,
                Encoders encoders = Encoders::kForgotten);

// Writes down what this comparison is, which may have more schemes and seeds than before.
void go_on(const ComparisonCall& call, KeptInputs& kept, ComparisonHost& host);

// Returns results with the facts about the whole comparison, without cells.
Results begin_results(const ComparisonCall& call, const Subject& subject, const std::vector<Variant>& variants,
                      ComparisonHost& host);

// Runs all cells that are not finished and adds their results.
void run_cells(const ComparisonCall& call, const std::vector<CellPlan>& plans, ComparisonHost& host, Results* results);

}  // namespace headshare
