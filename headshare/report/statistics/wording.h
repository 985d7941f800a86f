// Tables, headlines and reports all share these words and digits. All is plain text: whoever puts it into HTML or LaTeX
// escapes it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headshare/report/statistics/variant_rows.h"

namespace headshare {

// Returns "12.34", "0.873": as many digits as the measure bears.
std::string quality_text(const Subject& subject, double value);
std::string quality_text(const Subject& subject, const Summary& summary);     // "12.34 ±0.05", "-" without a value
std::string summary_text(const std::optional<Summary>& summary, int digits);  // the same, for losses
std::string quality_name(const Subject& subject);                             // "test perplexity"

std::string difference_heading(const Results& results);                      // "difference in test loss to mha"
std::string difference_text(const Subject& subject, const VariantRow& row);  // "+0.0213", "-"
std::string difference_interval_text(const Subject& subject, const std::optional<Interval>& interval);  // "" without
std::string quality_interval_text(const Subject& subject, const SettingRow& row);  // "[0.972, 0.984]", "" without one
int difference_digits(const Subject& subject);
std::string retention_text(const Retention& retention, int digits);  // "98.3 [97.1, 99.4]", "-" when undefined
std::string memory_saved_text(const Results& results,
                              const VariantRow& row);                    // "23.1%" of the reference's attention memory
std::string memory_text(const Results& results, const VariantRow& row);  // "1.5 MiB 23.1%"
std::string bytes_text(double bytes);                                    // "1.5 MiB", "406 MiB"
std::string rate_text(const VariantRow& row, double per_second);         // "1,204", "as mha", "-"
std::string count_text(int64_t count);                                   // "27,648", "-" for 0
std::string seeds_text(const SettingRow& row);                           // "3", "2 of 3"
bool lacks_seeds(const SettingRow& row);            // some are finished, and fewer than planned: shown grey
std::string seeds_in_words(const SettingRow& row);  // "mean of 3 seeds", "one seed", "mean of 2 of 3 planned seeds"
std::string number_of_seeds(size_t seeds);          // "one seed", "three seeds", "12 seeds"
std::string p_text(double p_value);                 // "0.03", "< 0.001"

// Returns what the rows are: "scheme" where each variant is named after its scheme and is nothing else, else "variant".
std::string noun(const Results& results);

// Returns "bits per byte", "BLEU"; of a signature ("bleu|nrefs:1|...") its first part.
std::string score_heading(const std::string& name);
std::string score_value_text(double value, int digits);                           // "0.8235", "none" where it is 0/0
std::string score_text(const SettingRow& row, const std::string& name);           // "1.234 ±0.005", "-" without it
std::string score_interval_text(const SettingRow& row, const std::string& name);  // "[56.10, 57.71]", "" without one

std::string capitalised(std::string text);

// Returns "language-model" as a heading: "Language model"; of benchmarks as they call themselves.
std::string subject_title(const Subject& subject);

std::string plural(size_t count, const std::string& noun);  // "1 seed", "3 seeds"

// Returns a variant's name in at most so many characters: a longer one keeps its beginning and its end, which tell the
// embeddings of one scheme from one another: "mhe_mul…d-proj".
std::string name_within(const std::string& name, size_t most);
std::string name_in_figure(const std::string& name);

// Returns what training counts for its speed: "tokens", "images", of a benchmark "examples".
std::string training_unit(const Subject& subject);

// Returns the finished, trained row with the best mean quality; null when there is none, or where losses of different
// tokens would be compared.
const VariantRow* best_row(const Results& results, const std::vector<VariantRow>& rows);

// Each tells whether a row shows what a column would hold.
bool shows_quality_interval(const Results& results);  // of perplexities the difference to the reference tells more
bool shows_score_interval(const std::vector<VariantRow>& rows, const std::string& name);
bool any_setting(const Results& results);
bool any_decoding(const Results& results);  // false for encoders: no cache, no decoding speed

// Tells whether models keep a cache of a source, filled once for each sentence.
bool any_source_cache(const Results& results);

// Tells whether models wrote what they are scored by, against the clock; false for files from before that was timed.
bool any_output_speed(const Results& results);

// Tells whether any model was trained on a card, whose memory was measured.
bool any_device_memory(const Results& results);

}  // namespace headshare
