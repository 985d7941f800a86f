#include "headshare/report/statistics/results_file.h"

#include "headshare/report/results/results_json.h"
#include "headshare/report/statistics/headline.h"
#include "headshare/report/statistics/speeds.h"
#include "headshare/report/statistics/variant_rows.h"

namespace headshare {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json or_null(const std::optional<Interval>& interval) {
  return interval ? Json::array({interval->low, interval->high}) : Json();
}

Json or_null(double measured) { return measured > 0 ? Json(measured) : Json(); }

Json to_json(const Summary& s) {
  if (s.count == 0) return {};
  return {{"count", s.count},   {"mean", s.mean}, {"deviation", or_null(s.deviation)},
          {"median", s.median}, {"min", s.min},   {"max", s.max}};
}

Json to_json(const Retention& r) {
  Json object = {{"value", or_null(r.value)},
                 {"interval", or_null(r.interval)},
                 {"rule", r.rule},
                 {"interval_rule", r.interval_rule}};
  if (!r.value) object["reason_undefined"] = r.reason_undefined;
  return object;
}

Json to_json(const Difference& d) {
  return {{"seeds", d.seeds},
          {"mean", d.mean},
          {"interval", or_null(d.interval())},
          {"interval_over_seeds", or_null(d.over_seeds)},
          {"interval_over_blocks", or_null(d.over_blocks)},
          {"p_value", or_null(d.p_value())},
          {"test", d.test}};
}

Json to_json(const std::vector<ScoreRow>& scores) {
  Json object = Json::object();
  for (const auto& [name, summary, interval] : scores) {
    object[name] = to_json(summary);
    if (interval) object[name]["interval"] = or_null(interval);
  }
  return object;
}

Json to_json(const SettingRow& s) {
  return {{"setting", s.setting},
          {"seeds", s.seeds},
          {"planned_seeds", s.planned},
          {"validation_loss", to_json(s.validation_loss)},
          {"test_loss", to_json(s.test_loss)},
          {"quality", to_json(s.quality)},
          {"quality_interval", or_null(s.quality_interval)},
          {"quality_interval_rule", s.quality_interval_rule},
          {"scores", to_json(s.scores)}};
}

Json to_json(const TaskRow& task) {
  Json object = {{"task", task.task}, {"score", to_json(task.score)}, {"metrics", to_json(task.metrics)}};
  if (!task.coverage) return object;
  object["coverage"] = to_json(*task.coverage);
  object["coverage"]["unseen_score"] = to_json(task.unseen_score);
  return object;
}

Json to_json(const VariantRow& row) {
  Json object = {{"variant", row.variant}, {"scheme", row.scheme}};
  object.update(to_json(row.best));
  object.update({{"trained", row.trained()}, {"weights_of", row.trained() ? Json() : Json(row.weights_of)}});
  for (const SizeNumber& number : kSizeNumbers) object[number.name] = row.size.*number.member;
  object.update({{"minus_reference", row.against_reference ? to_json(*row.against_reference) : Json()},
                 {"prr", to_json(row.prr)},
                 {"peop", to_json(row.peop)},
                 {"attention_memory_bytes", or_null(row.attention_memory_bytes)},
                 {"attention_memory_saved_percent", or_null(row.attention_memory_saved_percent)},
                 {"peak_memory_bytes", or_null(row.peak_memory_bytes)},
                 {"peak_device_bytes", or_null(row.peak_device_bytes)},
                 {"training_tokens_per_second", or_null(row.training_tokens_per_second)},
                 {"decoding_tokens_per_second", or_null(row.decoding_tokens_per_second)},
                 {"decoding_context", row.decoding_context},
                 {"failed", row.failed.size()}});
  if (row.outputs_per_second > 0) object["outputs_per_second"] = row.outputs_per_second;
  if (row.table_prr.value || !row.table_prr.reason_undefined.empty()) object["table_prr"] = to_json(row.table_prr);
  if (!row.against_reference) object["why_no_difference"] = row.why_no_difference;
  if (!row.tasks.empty()) {
    object["tasks"] = Json::array();
    for (const TaskRow& task : row.tasks) object["tasks"].push_back(to_json(task));
  }
  if (row.settings.size() > 1) {
    object["settings"] = Json::array();
    for (const SettingRow& setting : row.settings) object["settings"].push_back(to_json(setting));
  }
  return object;
}

}  // namespace

nlohmann::ordered_json results_file(const Results& results) {
  const std::vector<VariantRow> rows = summarise(results);
  const BusySpeeds busy = busy_speeds(results, rows);
  Json facts = to_json(results);
  Json file = Json::object();
  for (auto& [key, fact] : facts.items()) {
    if (key == "variants" && busy.any()) file["busy_speeds"] = names_of(busy);
    file[key] = std::move(fact);
    if (key == "complete") file["headline"] = headline(results, rows).text();
    if (key != "variants") continue;
    file["rows"] = Json::array();
    for (const VariantRow& row : rows) file["rows"].push_back(to_json(row));
  }
  return file;
}

}  // namespace headshare
