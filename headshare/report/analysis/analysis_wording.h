// The table and the page of `headshare analyze` share these words and digits. All is plain text.
#pragma once

#include <string>
#include <vector>

#include "headshare/report/analysis/head_analysis.h"

namespace headshare {

// Returns "encoder of scheme mha, 6 layers; 8 heads of width 64", for example.
std::string subject_text(const HeadAnalysis& analysis);

// Tells how alike heads are, and names the conversion that saves most for a small error, in a few sentences. A
// conversion that takes more than kMostTime of the model's time is never recommended; where it would save more, it is
// named with what it costs. Times of a busy machine decide nothing, and the last sentence says so.
std::string finding_text(const HeadAnalysis& analysis);

constexpr double kMostTime = 1.1;

// Says what the numbers are, in a sentence or two each.
std::vector<std::string> explanations(const HeadAnalysis& analysis);

// Returns the one number that conversions are compared by: with a text the change of layers' outputs, else the larger
// of the errors of scores and values; means over layers.
double error_of(const ConversionAnalysis& conversion);
std::string error_name(const HeadAnalysis& analysis);

// Returns the conversions that are possible.
std::vector<const ConversionAnalysis*> possible(const HeadAnalysis& analysis);

// Returns the name of a row; that of the model as it is is "mha, as it is".
std::string row_name(const HeadAnalysis& analysis, const ConversionAnalysis& row);

std::string error_text(double error);  // "12.34%"
// Returns how a cost changes against that of the model as it is: "-25%"; "±0%" where it does not.
std::string change_text(double after, double before);
std::string time_heading(const HeadAnalysis& analysis);         // "time"; of a busy machine "time, busy machine"
std::string width_text(const Spectrum& spectrum);               // "96 of 512"
std::string pair_text(const std::optional<HeadPair>& heads);    // "3 and 7: 0.83"; "-" without
std::string similarity_text(std::optional<double> similarity);  // "0.83"
std::string milliseconds_text(std::optional<double> milliseconds);

}  // namespace headshare
