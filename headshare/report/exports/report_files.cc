#include "headshare/report/exports/report_files.h"

#include "headshare/report/exports/exports.h"
#include "headshare/report/html/html_report.h"
#include "headshare/report/results/results_json.h"
#include "headshare/report/statistics/results_file.h"

namespace headshare {

void write_reports(const fs::path& directory, const Results& results, ReportFiles files) {
  if (files.results) write_file(directory / "results.json", to_text(results_file(results)));
  if (files.csv) {
    write_file(directory / "results.csv", variants_csv({results}));
    write_file(directory / "cells.csv", cells_csv({results}));
    if (!results.subject.tasks.empty()) write_file(directory / "tasks.csv", tasks_csv({results}));
  }
  if (files.html) write_file(directory / "report.html", html_report({results}));
  if (files.latex) write_file(directory / "table.tex", latex_tables({results}));
}

}  // namespace headshare
