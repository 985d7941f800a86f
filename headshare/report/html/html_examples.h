// Shows side by side what models wrote, or what they saw in images.
#pragma once

#include <string>

#include "headshare/report/html/html_figures.h"

namespace headshare {

// Returns a section with each example's input, its reference, and what the first seed of every variant's best setting
// wrote; of images
// the picture, its class and the classes that they told. It is "" where there are no examples.
std::string examples_html(const ReportView& view);

}  // namespace headshare
