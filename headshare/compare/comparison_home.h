// The directory of a comparison: what an earlier call left there, what may join it, what begins.
#pragma once

#include "headshare/base/output_mark.h"
#include "headshare/compare/comparison_call.h"
#include "headshare/data/text/kept_input.h"

namespace headshare {

// Where encoders are pre-trained that are then fine-tuned: below the comparison's directory.
inline constexpr const char* kEncoders = "encoders";

// The mark of a directory that `compare` writes. Encoders are a comparison of their own below it, with a mark of their
// own.
OutputMark comparison_mark(const fs::path& home);

// Throws Error for what is not of a comparison, and for one that is neither to be gone on with nor overwritten.
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

// Throws Error for more than a day, unless that is wanted.
void check_time(const ComparisonCall& call, const Forecast& forecast);

// What a comparison of so few seeds cannot decide; "" where they are enough, or more are added until it is decided.
std::string seeds_caveat(const ComparisonOptions& options);

// Says what a comparison that begins learns from, how long it will take and what its seeds cannot decide.
void say_forecast(const ComparisonCall& call, const Forecast& forecast);

// "about 4:10 on 2 threads"
std::string time_text(const Forecast& forecast);

// Where finished cells may be: nowhere when an earlier comparison is overwritten.
fs::path finished_home(const ComparisonCall& call);

// Forgets an earlier comparison and writes down what this one is: its mark, its inputs, its options.
enum class Encoders { kForgotten, kKept };
void begin_anew(const ComparisonCall& call, KeptInputs& kept, ComparisonHost& host,
                Encoders encoders = Encoders::kForgotten);

// Writes down what this comparison is, which may have got more schemes and seeds.
void go_on(const ComparisonCall& call, KeptInputs& kept, ComparisonHost& host);

// Facts about the whole, without cells.
Results begin_results(const ComparisonCall& call, const Subject& subject, const std::vector<Variant>& variants,
                      ComparisonHost& host);

// Runs all cells that are not finished and adds what they found.
void run_cells(const ComparisonCall& call, const std::vector<CellPlan>& plans, ComparisonHost& host, Results* results);

}  // namespace headshare
