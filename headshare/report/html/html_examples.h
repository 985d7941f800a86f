// Shows side by side what models wrote.
#pragma once

#include <string>

#include "headshare/report/html/html_figures.h"

namespace headshare {

// Returns a section with each example's input, its reference, and what the first seed of every variant's best setting
// wrote; "" where models write no text.
std::string examples_html(const ReportView& view);

}  // namespace headshare
