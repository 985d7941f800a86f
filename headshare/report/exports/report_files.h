// A comparison leaves these files beside its models.
#pragma once

#include "headshare/base/files/file.h"
#include "headshare/report/results/results.h"

namespace headshare {

struct ReportFiles {
  bool results = true;  // results.json
  bool csv = true;      // results.csv (a line per variant), cells.csv and of a benchmark tasks.csv
  bool html = true;     // report.html
  bool latex = false;   // table.tex
};

// Writes what is asked for into `directory`, each file whole or not at all. Throws Error.
void write_reports(const fs::path& directory, const Results& results, ReportFiles files = {});

}  // namespace headshare
