// Checks what a file of results must hold, beyond keys and their kinds.
#pragma once

#include <string>

#include "headshare/report/results/results.h"

namespace headshare {

// A model that errs nowhere has a loss of 0, within this.
inline constexpr double kLossRounding = 1e-6;

// Throws Error, naming `where` and the cell, for parts that contradict each other (a cell that was not planned, or is
// there twice; tasks or examples that are not those of the subject) and for numbers that nothing can have measured.
void check_results(const Results& results, const std::string& where);

}  // namespace headshare
