// Draws the figures of the page that `headshare analyze --html` writes.
#pragma once

#include <string>
#include <vector>

#include "headshare/report/analysis/head_analysis.h"
#include "headshare/report/html/html_table.h"

namespace headshare {

// Returns figures of the error of each conversion against what it saves: cache, attention parameters, time; those that
// the model has.
std::vector<HtmlFigure> saving_figures(const HeadAnalysis& analysis);

// Returns all layers' singular values, then for each layer how its energy is spread over dimensions.
std::vector<HtmlFigure> spectrum_figures(const HeadAnalysis& analysis);

// Shows for each layer how alike its heads are: a heat map of the score maps' cosines, with a text one of attention
// too. All layers have the same scale.
std::vector<HtmlFigure> similarity_figures(const HeadAnalysis& analysis);

}  // namespace headshare
