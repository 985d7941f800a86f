#include "headshare/report/statistics/wording.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/base/strings/visible.h"
#include "headshare/report/statistics/comparability.h"

namespace headshare {
namespace {

int quality_digits(const Subject& subject, double value) {
  if (!compares_loss(subject)) return subject.full_scale > 1 ? 2 : 3;
  return std::abs(value) < 1000 ? 2 : 0;
}

int score_digits(const std::string& name) {
  return name == "bleu" || name == "chrf" || name.ends_with("perplexity") ? 2 : 3;
}

}  // namespace

std::string noun(const Results& results) {
  const std::vector<std::string> names = variant_names(results);
  const bool plain = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    const Variant variant = variant_of(results, name);
    return variant.name == variant.scheme && variant.options.size() <= 1;
  });
  return plain ? "scheme" : "variant";
}

std::string score_value_text(double value, int digits) {
  return std::isfinite(value) ? format_fixed(value, digits) : "none";
}

std::string score_heading(const std::string& name) {
  constexpr std::array<std::pair<const char*, const char*>, 5> kNames = {{{"bits-per-byte", "bits per byte"},
                                                                          {"bleu", "BLEU"},
                                                                          {"chrf", "chrF"},
                                                                          {"masked-perplexity", "masked perplexity"},
                                                                          {"three-way-loss", "three-way loss"}}};
  const std::string plain = name.substr(0, name.find('|'));
  for (const auto& [key, heading] : kNames) {
    if (plain == key) return heading;
  }
  return plain;
}

std::string score_text(const SettingRow& row, const std::string& name) {
  return summary_text(score_of(row.scores, name).summary, score_digits(name));
}

std::string score_interval_text(const SettingRow& row, const std::string& name) {
  const std::optional<Interval> interval = score_of(row.scores, name).interval;
  return interval ? interval_text(*interval, score_digits(name)) : "";
}

std::string capitalised(std::string text) {
  const std::string first = text.substr(0, text.find(' '));
  const auto is_capital = [](unsigned char letter) { return std::isupper(letter) != 0; };
  if (std::any_of(first.begin(), first.end(), is_capital)) return text;  // such as chrF
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string subject_title(const Subject& subject) {
  constexpr std::array<std::pair<const char*, const char*>, 4> kNames = {
      {{"glue", "GLUE"}, {"superglue", "SuperGLUE"}, {"squad-v1.1", "SQuAD v1.1"}, {"squad-v2.0", "SQuAD v2.0"}}};
  for (const auto& [name, title] : kNames) {
    if (subject.name == name) return title;
  }
  std::string text = subject.name;
  std::replace(text.begin(), text.end(), '-', ' ');
  return text.empty() ? "Comparison" : capitalised(text);
}

std::string quality_text(const Subject& subject, double value) {
  return format_fixed(value, quality_digits(subject, value));
}

std::string quality_text(const Subject& subject, const Summary& summary) {
  return summary.count == 0 ? "-" : summary_text(summary, quality_digits(subject, summary.mean));
}

std::string quality_interval_text(const Subject& subject, const SettingRow& row) {
  if (!row.quality_interval) return "";
  return interval_text(*row.quality_interval, quality_digits(subject, row.quality.mean));
}

std::string summary_text(const std::optional<Summary>& summary, int digits) {
  if (!summary || summary->count == 0) return "-";
  std::string text = format_fixed(summary->mean, digits);
  if (summary->deviation) text += " ±" + format_fixed(*summary->deviation, digits);
  return text;
}

std::string quality_name(const Subject& subject) {
  return (subject.has_test_part ? "test " : "validation ") + score_heading(subject.measure);
}

int difference_digits(const Subject& subject) { return subject.full_scale > 1 ? 2 : 4; }

std::string difference_heading(const Results& results) {
  return join_text("difference in ", compared_name(results.subject), " to ", results.references.quality);
}

std::string difference_text(const Subject& subject, const VariantRow& row) {
  if (!row.trained() && row.against_reference) return "as " + row.weights_of;
  return row.against_reference ? format_signed(row.against_reference->mean, difference_digits(subject)) : "-";
}

std::string difference_interval_text(const Subject& subject, const std::optional<Interval>& interval) {
  return interval ? interval_text(*interval, difference_digits(subject), /*with_sign=*/true) : "";
}

std::string retention_text(const Retention& retention, int digits) {
  if (!retention.value) return "-";
  std::string text = format_rounded(*retention.value, digits);
  if (retention.interval) text += " " + interval_text(*retention.interval, digits);
  return text;
}

std::string memory_saved_text(const Results& results, const VariantRow& row) {
  const bool reference = row.variant == results.references.quality;
  if (!row.attention_memory_saved_percent || reference || !row.trained()) return "";
  return format_rounded(*row.attention_memory_saved_percent, 1) + "%";
}

std::string memory_text(const Results& results, const VariantRow& row) {
  if (row.attention_memory_bytes <= 0) return rate_text(row, 0);
  const std::string saved = memory_saved_text(results, row);
  return bytes_text(row.attention_memory_bytes) + (saved.empty() ? "" : " " + saved);
}

std::string rate_text(const VariantRow& row, double per_second) {
  if (!row.trained() && per_second <= 0) return "as " + row.weights_of;
  return per_second > 0 ? format_count(per_second) : "-";
}

std::string count_text(int64_t count) {
  if (count <= 0) return "-";
  if (count >= 1'000'000) return format_count(static_cast<double>(count));
  // The count is exact, unlike format_count's: the embeddings by which some schemes differ are a few hundred numbers.
  std::string digits = std::to_string(count);
  if (digits.size() > 3) digits.insert(digits.size() - 3, ",");
  return digits;
}

std::string bytes_text(double bytes) {
  const std::string text = format_bytes(bytes);  // "406.2 MiB"
  return text.find('.') < 3 ? text
                            : text.substr(0, text.find('.')) + text.substr(std::min(text.size(), text.find(' ')));
}

std::string seeds_text(const SettingRow& row) {
  const auto finished = static_cast<int64_t>(row.seeds.size());
  return finished == row.planned ? std::to_string(finished) : join_text(finished, " of ", row.planned);
}

bool lacks_seeds(const SettingRow& row) {
  return !row.seeds.empty() && static_cast<int64_t>(row.seeds.size()) < row.planned;
}

std::string seeds_in_words(const SettingRow& row) {
  const size_t finished = row.seeds.size();
  if (lacks_seeds(row)) {
    return join_text(finished == 1 ? "one" : join_text("mean of ", finished), " of ", row.planned, " planned seeds");
  }
  return finished == 1 ? "one seed" : join_text("mean of ", finished, " seeds");
}

std::string number_of_seeds(size_t seeds) {
  constexpr std::array kWords = {"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"};
  return (seeds < kWords.size() ? std::string(kWords[seeds]) : std::to_string(seeds)) +
         (seeds == 1 ? " seed" : " seeds");
}

std::string p_text(double p_value) {
  return p_value < 0.001 ? "< 0.001" : format_fixed(p_value, p_value < 0.1 ? 3 : 2);
}

std::string plural(size_t count, const std::string& noun) { return join_text(count, " ", noun, count == 1 ? "" : "s"); }

std::string name_within(const std::string& name, size_t most) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) { return c >= ' ' && c < 0x7F; });
  if (!plain || name.size() <= most) return abbreviated(name, most);
  const size_t begin = most / 2;
  return name.substr(0, begin) + "…" + name.substr(name.size() - (most - 1 - begin));
}

std::string name_in_figure(const std::string& name) { return name_within(name, 14); }

std::string training_unit(const Subject& subject) { return subject.tasks.empty() ? subject.unit : "examples"; }

const VariantRow* best_row(const Results& results, const std::vector<VariantRow>& rows) {
  if (!all_losses_compare(results)) return nullptr;
  const Subject& subject = results.subject;
  const VariantRow* best = nullptr;
  for (const VariantRow& row : rows) {
    if (!row.finished() || !row.trained()) continue;
    const bool wins = best == nullptr || (subject.direction == Direction::kLowerIsBetter
                                              ? row.best.quality.mean < best->best.quality.mean
                                              : row.best.quality.mean > best->best.quality.mean);
    if (wins) best = &row;
  }
  return best;
}

bool shows_quality_interval(const Results& results) { return !compares_loss(results.subject); }

bool shows_score_interval(const std::vector<VariantRow>& rows, const std::string& name) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const VariantRow& row) { return score_of(row.best.scores, name).interval.has_value(); });
}

bool any_setting(const Results& results) {
  return std::any_of(results.planned.begin(), results.planned.end(),
                     [](const CellKey& key) { return !key.setting.empty(); });
}

bool any_decoding(const Results& results) {
  return results.cells.empty() || std::any_of(results.cells.begin(), results.cells.end(),
                                              [](const Cell& cell) { return cell.size.cache_bytes_per_token > 0; });
}

bool any_source_cache(const Results& results) {
  return std::any_of(results.cells.begin(), results.cells.end(),
                     [](const Cell& cell) { return cell.size.source_cache_bytes_per_token > 0; });
}

bool any_output_speed(const Results& results) {
  return std::any_of(results.cells.begin(), results.cells.end(),
                     [](const Cell& cell) { return cell.outputs_per_second > 0; });
}

bool any_device_memory(const Results& results) {
  return std::any_of(results.cells.begin(), results.cells.end(),
                     [](const Cell& cell) { return cell.peak_device_bytes > 0; });
}

}  // namespace headshare
