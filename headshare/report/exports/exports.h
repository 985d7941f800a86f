// Writes a comparison for other programs: CSV for spreadsheets and data frames, LaTeX for papers.
#pragma once

#include <string>
#include <vector>

#include "headshare/report/results/results.h"

namespace headshare {

// These marks tell our files from others: the names that every CSV file begins with, and the comment that leads a
// table.
inline constexpr const char* kCsvMark = "subject,data,match,measure,part,variant,";
inline constexpr const char* kLatexMark = "% headshare: ";

// Returns CSV by RFC 4180: a line per variant (summarise's rows) below a line of names; what is not known stays empty.
// Several results stand below one another, distinguished by the columns `subject` and `data`. A text that a spreadsheet
// would take for a formula (it begins with =, +, -, @, tab or CR and is no number) has an apostrophe before it.
std::string variants_csv(const std::vector<Results>& all);

// Returns the same with a line for each planned cell: finished, failed (with its reason) or missing.
std::string cells_csv(const std::vector<Results>& all);

// Returns the same with a line for each variant and task of a benchmark: "tasks.csv". It is empty where there is no
// benchmark.
std::string tasks_csv(const std::vector<Results>& all);

// Returns tables for \input between paragraphs, with the packages booktabs and graphicx: floats with a caption and a
// label ("tab:offsets"; a second comparison of that name has "tab:offsets-2"). Footnotes stand as comments above them.
// Characters of a name that are no letters are escaped. The benchmarks among them come first, side by side as the MHE
// paper has them.
std::string latex_tables(const std::vector<Results>& all);

}  // namespace headshare
