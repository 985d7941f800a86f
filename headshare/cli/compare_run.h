// Running `headshare compare`: what a call asks for, and the grid of models it makes.
#pragma once

#include <functional>

#include "headshare/cli/args.h"
#include "headshare/cli/grid_progress.h"
#include "headshare/cli/runtime_options.h"
#include "headshare/compare/options.h"
#include "headshare/data/text/kept_input.h"

namespace headshare {

struct CompareCommand {
  std::string out = "comparison";
  bool resume = false;
  bool overwrite = false;
  bool dry_run = false;
  bool beyond_a_day = false;
  bool json = false;
  bool latex = false;
  bool adds = false;  // schemes or seeds to a comparison that an earlier call began
  ComparisonOptions comparison;
  RuntimeOptions runtime;

  Arguments arguments();
};

// The command of a directory that an earlier call began, with its options and `words` on top. Throws UsageError where
// there is none, and for options that finished models would not know of: only schemes, variants and seeds may be added.
CompareCommand resumed_command(const Words& words, const std::string& out);

// The comparison of models that are trained from the beginning; `line` is the command as the user typed it. Prints what
// it does on standard error, and writes everything into command.out. `beginning` is called when all is checked and
// nothing begun, unless an earlier call is gone on with. Throws Interrupted when asked to stop.
Results compare_trained(CompareCommand& command, const std::string& line, const std::function<void()>& beginning = {});

// Where encoders are pre-trained that are then fine-tuned: below the comparison's directory.
inline constexpr const char* kEncoders = "encoders";

// What such comparisons and those of fine-tuned encoders (compare_tuned.h) share.

// Throws Error for what is not of a comparison, and for one that is neither to be gone on with nor overwritten.
void check_directory(const CompareCommand& command, const fs::path& home);

// Another text or tokenizer than at the beginning would put two experiments into one table.
void check_same_data(const fs::path& home, const Subject& subject);

// A name must stand for the same options as before.
void check_same_variants(const fs::path& home, const std::vector<Variant>& variants);

// Forgets an earlier comparison and writes down what this one is: its mark, its inputs, its options.
enum class Encoders { kForgotten, kKept };
void begin_anew(const CompareCommand& command, const fs::path& home, KeptInputs& kept,
                Encoders encoders = Encoders::kForgotten);

// Writes down what this comparison is, which may have got more schemes and seeds.
void go_on(const CompareCommand& command, const fs::path& home, KeptInputs& kept);

// Throws Error for more than a day, unless that is wanted; says how long it will take.
void check_time(const CompareCommand& command, size_t models, double seconds);

// Facts about the whole, without cells.
Results begin_results(const CompareCommand& command, const Subject& subject, const std::string& line,
                      const std::vector<Variant>& variants);

// Runs all cells that are not finished, each in a process of its own, and adds what they found.
void run_cells(const CompareCommand& command, const std::vector<CellPlan>& plans, Results* results);

}  // namespace headshare
