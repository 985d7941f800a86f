#include "headshare/compare/summary.h"

#include <algorithm>

#include "headshare/base/error.h"

namespace headshare {
namespace {

using Column = std::vector<double>;

template <class Read>
Column column(const std::vector<Cell>& cells, SchemeKind scheme, const Read& read) {
  Column values;
  for (const Cell& cell : cells) {
    if (cell.scheme == scheme) values.push_back(read(cell));
  }
  return values;
}

Retention without(const char* scheme, const char* rule) {
  Retention none;
  none.reason_undefined = join_text("needs ", scheme, " among the schemes");
  none.rule = rule;
  return none;
}

nlohmann::json to_json(const Summary& s) {
  return {{"count", s.count},
          {"mean", s.mean},
          {"deviation", s.deviation ? nlohmann::json(*s.deviation) : nlohmann::json()},
          {"median", s.median},
          {"min", s.min},
          {"max", s.max}};
}

nlohmann::json to_json(const std::optional<Interval>& interval) {
  return interval ? nlohmann::json({interval->low, interval->high}) : nlohmann::json();
}

nlohmann::json to_json(const Retention& r) {
  nlohmann::json object = {{"value", r.value ? nlohmann::json(*r.value) : nlohmann::json()},
                           {"rule", r.rule},
                           {"interval", to_json(r.interval)},
                           {"interval_rule", r.interval_rule}};
  if (!r.value) object["reason_undefined"] = r.reason_undefined;
  return object;
}

nlohmann::json to_json(const SchemeSummary& row) {
  nlohmann::json object = {{"scheme", scheme_name(row.scheme)},
                           {"attention_parameters", row.size.attention_parameters},
                           {"attention_parameters_effective", row.size.attention_parameters_effective},
                           {"total_parameters", row.size.total_parameters},
                           {"kv_cache_elements_per_token", row.size.cache_elements_per_token},
                           {"kv_cache_bytes_per_token", row.size.cache_bytes_per_token},
                           {"test_loss", to_json(row.test_loss)},
                           {"perplexity", to_json(row.perplexity)},
                           {"bits_per_byte", row.bits_per_byte ? to_json(*row.bits_per_byte) : nlohmann::json()},
                           {"prr", to_json(row.prr)},
                           {"peop", to_json(row.peop)},
                           {"trained", row.scheme != SchemeKind::kElLossless},
                           {"training_tokens_per_second", row.tokens_per_second}};
  if (row.loss_against_mha) {
    object["test_loss_minus_mha"] = {{"mean", row.loss_against_mha->mean},
                                     {"interval", to_json(row.loss_against_mha->interval)},
                                     {"test", "Student t over seeds, paired"}};
  }
  return object;
}

}  // namespace

std::vector<SchemeSummary> summarise(const ComparisonOptions& options, const std::vector<Cell>& cells,
                                     int64_t vocabulary) {
  const auto read_perplexity = [](const Cell& cell) { return cell.perplexity; };
  const auto read_loss = [](const Cell& cell) { return cell.test_loss; };
  const Column mha = column(cells, SchemeKind::kMha, read_perplexity);
  const Column sha = column(cells, SchemeKind::kSha, read_perplexity);
  const auto size_of = [&](SchemeKind scheme) {
    DecoderOptions model = options.language.model;
    model.attention.scheme = scheme;
    model.vocabulary = vocabulary;
    return measure(resolve(model));
  };

  std::vector<SchemeSummary> rows;
  for (const Cell& first : cells) {
    const SchemeKind scheme = first.scheme;
    if (std::any_of(rows.begin(), rows.end(), [&](const SchemeSummary& row) { return row.scheme == scheme; })) continue;
    const Column quality = column(cells, scheme, read_perplexity);
    SchemeSummary row{.scheme = scheme,
                      .size = size_of(scheme),
                      .test_loss = summarize(column(cells, scheme, read_loss)),
                      .perplexity = summarize(quality)};
    if (first.bits_per_byte) {
      row.bits_per_byte = summarize(column(cells, scheme, [](const Cell& cell) { return *cell.bits_per_byte; }));
    }
    const auto lower = Direction::kLowerIsBetter;
    row.prr = mha.empty() ? without("mha", "PRR") : prr_over_seeds({.direction = lower}, quality, mha);
    const PeopQuestion question{.parameters = row.size.attention_parameters,
                                .parameters_sha = size_of(SchemeKind::kSha).attention_parameters,
                                .direction = lower,
                                .is_sha = scheme == SchemeKind::kSha};
    row.peop = sha.empty() ? without("sha", "PEoP") : peop_over_seeds(question, quality, sha);
    if (!mha.empty() && scheme != SchemeKind::kMha) {
      row.loss_against_mha =
          paired_difference(column(cells, scheme, read_loss), column(cells, SchemeKind::kMha, read_loss));
    }
    if (scheme != SchemeKind::kElLossless) {
      row.tokens_per_second =
          median(column(cells, scheme, [](const Cell& cell) { return cell.training.tokens_per_second; }));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

nlohmann::json results_json(const ComparisonOptions& options, const std::vector<Cell>& cells,
                            const std::vector<SchemeSummary>& rows, const nlohmann::json& environment) {
  ComparisonOptions copy = options;
  nlohmann::json object = {{"format", "headshare comparison"}, {"format_version", kResultsFormatVersion},
                           {"environment", environment},       {"options", to_json(fields(copy))},
                           {"rows", nlohmann::json::array()},  {"cells", nlohmann::json::array()}};
  for (const SchemeSummary& row : rows) object["rows"].push_back(to_json(row));
  for (const Cell& cell : cells) object["cells"].push_back(headshare::to_json(cell));
  return object;
}

}  // namespace headshare
