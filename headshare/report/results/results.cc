#include "headshare/report/results/results.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/base/json_input.h"
#include "headshare/base/json_reader.h"
#include "headshare/report/results/check_results.h"
#include "headshare/report/statistics/headline.h"
#include "headshare/report/statistics/speeds.h"
#include "headshare/report/statistics/variant_rows.h"

namespace headshare {
nlohmann::ordered_json to_json(const CellKey& key) {
  return {{"variant", key.variant}, {"setting", key.setting}, {"seed", key.seed}};
}

CellKey key_from_json(const nlohmann::json& object, const std::string& where) {
  const JsonReader read(object, where);
  const char* name = read.has("variant") ? "variant" : "scheme";  // "scheme": format 2
  CellKey key{.variant = read.text(name), .setting = read.text("setting"), .seed = read.integer("seed")};
  HS_CHECK(!key.variant.empty(), read.name(name), " is empty");
  return key;
}

namespace {

constexpr const char* kFormat = "headshare comparison";
constexpr uint64_t kMostBytes = uint64_t{1} << 30;

constexpr const char* kHigher = "higher is better";
constexpr const char* kLower = "lower is better";

std::vector<int64_t> looks_from_json(const nlohmann::json& list, const std::string& where) {
  constexpr size_t kMostLooks = 1000;
  HS_CHECK(list.is_array() && list.size() <= kMostLooks, where, ": \"looks\" is not a list of numbers of seeds");
  std::vector<int64_t> looks;
  for (const nlohmann::json& seeds : list) {
    HS_CHECK(seeds.is_number_integer() && seeds.get<int64_t>() > (looks.empty() ? 0 : looks.back()), where,
             ": \"looks\" is not a list of growing numbers of seeds: ", list.dump());
    looks.push_back(seeds.get<int64_t>());
  }
  return looks;
}

FailedCell failed_from_json(const nlohmann::json& object, const std::string& where) {
  return {.key = key_from_json(object, where), .reason = JsonReader(object, where).text("reason")};
}

// Below 0 by no more than rounding: the loss of a model that errs nowhere is 0.
double loss_from_json(const JsonReader& read, const char* key) {
  constexpr double kRounding = 1e-6;
  const double loss = read.number(key);
  HS_CHECK(loss >= -kRounding, read.name(key), " must be at least 0, not ", loss);
  return loss;
}

CurvePoint point_from_json(const nlohmann::json& object, const std::string& where) {
  const JsonReader read(object, where);
  return {.step = read.integer("step", 0),
          .seconds = read.number_from("seconds", 0),
          .validation_loss = loss_from_json(read, "validation_loss"),
          .validation_score = read.optional_number("validation_score")};
}

Interval interval_from_json(const JsonReader& read) {
  const std::vector<double> ends = read.numbers("interval");
  HS_CHECK(ends.size() == 2 && ends[0] <= ends[1], read.name("interval"), " is not two numbers, the lower first");
  return {.low = ends[0], .high = ends[1]};
}

Score score_from_json(const nlohmann::json& object, const std::string& where) {
  const JsonReader read(object, where);
  return {.name = read.text("name"),
          .value = read.optional_number("value").value_or(std::nan("")),
          .signature = read.text("signature"),
          .interval = read.has("interval") ? std::optional(interval_from_json(read)) : std::nullopt};
}

nlohmann::ordered_json to_json(const std::vector<Score>& scores) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Score& one : scores) {
    const auto value = std::isfinite(one.value) ? nlohmann::ordered_json(one.value) : nlohmann::ordered_json();
    list.push_back({{"name", one.name}, {"value", value}, {"signature", one.signature}});
    if (one.interval) list.back()["interval"] = {one.interval->low, one.interval->high};
  }
  return list;
}

WaitShares waits_from_json(const nlohmann::json& object, const std::string& where) {
  const JsonReader read(object, where);
  const auto share = [&](const char* key) {
    return read.has(key) ? std::optional(read.number_from(key, 0)) : std::nullopt;
  };
  return {.training = share("training"), .decoding = share("decoding"), .outputs = share("outputs")};
}

nlohmann::ordered_json to_json(const WaitShares& waited) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  if (waited.training) object["training"] = *waited.training;
  if (waited.decoding) object["decoding"] = *waited.decoding;
  if (waited.outputs) object["outputs"] = *waited.outputs;
  return object;
}

// Format 2 had a key for each of these.
std::vector<Score> scores_of_format_2(const JsonReader& read) {
  std::vector<Score> scores;
  for (const auto& [key, name] :
       {std::pair("bits_per_byte", "bits-per-byte"), {"pseudo_perplexity", "pseudo-perplexity"}}) {
    const std::optional<double> value = read.optional_number(key);
    if (value) scores.push_back({.name = name, .value = *value});
  }
  return scores;
}

TunedTask task_from_json(const nlohmann::json& object, const std::string& where) {
  const JsonReader read(object, where);
  return {.task = read.text("task"),
          .score = read.number("score"),
          .metrics = read.list("metrics", score_from_json),
          .examples = read.integer("examples", 1),
          .learning_rate = read.number_from("learning_rate", 0),
          .best_epoch = read.number_from("best_epoch", 0),
          .validation_loss = loss_from_json(read, "validation_loss"),
          .coverage = read.has("coverage")
                          ? std::optional(coverage_from_json(read.object("coverage"), read.name("coverage")))
                          : std::nullopt};
}

nlohmann::ordered_json to_json(const TunedTask& t) {
  nlohmann::ordered_json object = {{"task", t.task},
                                   {"score", t.score},
                                   {"metrics", to_json(t.metrics)},
                                   {"examples", t.examples},
                                   {"learning_rate", t.learning_rate},
                                   {"best_epoch", t.best_epoch},
                                   {"validation_loss", t.validation_loss}};
  if (t.coverage) object["coverage"] = to_json(*t.coverage);
  return object;
}

nlohmann::ordered_json to_json(const Subject& s) {
  nlohmann::ordered_json object = {{"name", s.name},
                                   {"sentence", s.sentence},
                                   {"data", s.data},
                                   {"measure", s.measure},
                                   {"direction", s.direction == Direction::kHigherIsBetter ? kHigher : kLower},
                                   {"block", s.block},
                                   {"has_test_part", s.has_test_part},
                                   {"chance", s.chance ? nlohmann::ordered_json(*s.chance) : nlohmann::ordered_json()},
                                   {"full_scale", s.full_scale}};
  if (!s.tasks.empty()) object["tasks"] = s.tasks;
  for (const std::optional<double>& chance : s.task_chances) {
    object["task_chances"].push_back(chance ? nlohmann::ordered_json(*chance) : nlohmann::ordered_json());
  }
  if (s.unknown_share > 0) object["unknown_share"] = s.unknown_share;
  if (!s.fingerprint.empty()) object["fingerprint"] = s.fingerprint;
  if (!s.encoders.empty()) object["encoders"] = s.encoders;
  for (const WrittenExample& one : s.examples) {
    object["examples"].push_back({{"item", one.item}, {"input", one.input}, {"reference", one.reference}});
  }
  return object;
}

std::vector<std::string> texts_from_json(const JsonReader& read, const char* key) {
  if (!read.has(key)) return {};
  return read.list(key, [](const nlohmann::json& value, const std::string& where) {
    HS_CHECK(value.is_string(), where, " is not a text");
    return value.get<std::string>();
  });
}

std::vector<std::optional<double>> task_chances_from_json(const JsonReader& read) {
  if (!read.has("task_chances")) return {};
  return read.list("task_chances", [](const nlohmann::json& value, const std::string& where) -> std::optional<double> {
    if (value.is_null()) return std::nullopt;
    HS_CHECK(value.is_number(), where, " is neither a number nor null");
    return value.get<double>();
  });
}

WrittenExample example_from_json(const nlohmann::json& object, const std::string& where) {
  const JsonReader read(object, where);
  return {.item = read.integer("item", 0), .input = read.text("input"), .reference = read.text("reference")};
}

Subject subject_from_json(const nlohmann::json& object, const std::string& where) {
  const JsonReader read(object, where);
  const std::string direction = read.text("direction");
  HS_CHECK(direction == kHigher || direction == kLower, read.name("direction"), " must be \"", kHigher, "\" or \"",
           kLower, "\", not \"", direction, "\"");
  return {.name = read.text("name"),
          .sentence = read.text("sentence"),
          .data = read.text("data"),
          .measure = read.text("measure"),
          .direction = direction == kHigher ? Direction::kHigherIsBetter : Direction::kLowerIsBetter,
          .block = read.text("block"),
          .has_test_part = read.flag("has_test_part"),
          .chance = read.optional_number("chance"),
          .full_scale = read.has("full_scale") ? read.number_from("full_scale", 1) : 1,
          .tasks = texts_from_json(read, "tasks"),
          .task_chances = task_chances_from_json(read),
          .unknown_share = read.has("unknown_share") ? read.number_from("unknown_share", 0) : 0,
          .fingerprint = read.has("fingerprint") ? read.text("fingerprint") : "",
          .examples = read.has("examples") ? read.list("examples", example_from_json) : std::vector<WrittenExample>(),
          .encoders = read.has("encoders") ? read.text("encoders") : ""};
}

// A results file cannot hold what is not a number, and statistics over it would be nonsense. NaN fails, too.
void check_finite(const Cell& cell) {
  const auto check = [&cell](double value, const char* what) {
    HS_CHECK(std::abs(value) <= kLargestNumber, name_of(cell.key), ": ", what, " is ", value,
             ": report the cell as failed");
  };
  check(cell.validation_loss, "the validation loss");
  check(cell.test_loss, "the test loss");
  check(cell.quality, "the quality");
  for (const Score& one : cell.scores) check(one.value, one.name.c_str());
  check(cell.training_seconds, "the training time");
  check(cell.training_tokens_per_second, "the training speed");
  check(cell.decoding_tokens_per_second, "the decoding speed");
  check(cell.outputs_per_second, "the translating speed");
  for (const double block : cell.blocks) check(block, "a block");
  for (const TunedTask& task : cell.tasks) {
    check(task.score, "the score of a task");
    check(task.validation_loss, "the validation loss of a task");
    if (task.coverage) check(task.coverage->unseen_score.value_or(0), "the score of unseen words");
  }
  for (const CurvePoint& point : cell.curve) {
    check(point.seconds, "the time of a curve point");
    check(point.validation_loss, "the loss of a curve point");
    check(point.validation_score.value_or(0), "the score of a curve point");
  }
}

void check_version(const JsonReader& read, const std::string& where) {
  HS_CHECK(read.text("format") == kFormat, where, ": \"format\" is not \"", kFormat, "\": not a file of headshare");
  const int64_t version = read.integer("format_version");
  HS_CHECK(version >= kOldestResultsFormat, where, " was written by an earlier headshare (format version ", version,
           ", not ", kResultsFormatVersion, "): run the comparison again");
  HS_CHECK(version <= kResultsFormatVersion, where, " was written by a newer headshare (format version ", version,
           ", not ", kResultsFormatVersion, "): use that one");
}

Variant variant_from_json(const nlohmann::json& object, const std::string& where) {
  const JsonReader read(object, where);
  return {.name = read.text("name"), .scheme = read.text("scheme"), .options = read.object("options")};
}

nlohmann::ordered_json to_json(const Variant& v) {
  return {{"name", v.name}, {"scheme", v.scheme}, {"options", v.options}};
}

// In format 2 only el_lossless was not trained.
std::string weights_of(const JsonReader& read) {
  if (read.has("trained")) return read.flag("trained") ? "" : "mha";
  return read.has("weights_of") ? read.text("weights_of") : "";
}

std::vector<int64_t> block_targets(const JsonReader& read) {
  if (!read.has("block_targets")) return {};
  std::vector<int64_t> targets = read.list("block_targets", [](const nlohmann::json& value, const std::string& where) {
    const std::optional<int64_t> count = json_integer(value);
    HS_CHECK(count && *count >= 1, where, " is not a whole number above 0");
    return *count;
  });
  const size_t blocks = read.numbers("blocks").size();
  HS_CHECK(targets.size() == blocks, read.name("block_targets"), " has ", targets.size(), " numbers, and there are ",
           blocks, " blocks");
  return targets;
}

}  // namespace

std::string name_of(const CellKey& key) {
  return join_text(key.variant, key.setting.empty() ? "" : " with ", key.setting, " seed ", key.seed);
}

Variant scheme_variant(const std::string& scheme) {
  return {.name = scheme, .scheme = scheme, .options = {{"scheme", scheme}}};
}

Variant variant_of(const Results& results, const std::string& name) {
  for (const Variant& one : results.variants) {
    if (one.name == name) return one;
  }
  return scheme_variant(name);
}

std::vector<std::string> variant_names(const Results& results) {
  std::vector<std::string> names;
  for (const CellKey& key : results.planned) {
    if (std::find(names.begin(), names.end(), key.variant) == names.end()) names.push_back(key.variant);
  }
  return names;
}

bool is_complete(const Results& results) {
  return results.cells.size() + results.failed.size() >= results.planned.size();
}

nlohmann::ordered_json to_json(const Coverage& c) {
  const auto score = c.unseen_score ? nlohmann::ordered_json(*c.unseen_score) : nlohmann::ordered_json();
  nlohmann::ordered_json object = {
      {"types", c.types}, {"unseen_types", c.unseen_types}, {"words", c.words},     {"unseen_words", c.unseen_words},
      {"rows", c.rows},   {"unseen_rows", c.unseen_rows},   {"unseen_score", score}};
  if (c.cut_rows) object["cut_rows"] = *c.cut_rows;
  return object;
}

Coverage coverage_from_json(const nlohmann::json& object, const std::string& where) {
  const JsonReader read(object, where);
  Coverage coverage{.types = read.integer("types", 0),
                    .unseen_types = read.integer("unseen_types", 0),
                    .words = read.integer("words", 0),
                    .unseen_words = read.integer("unseen_words", 0),
                    .rows = read.integer("rows", 0),
                    .unseen_rows = read.integer("unseen_rows", 0),
                    .cut_rows = read.has("cut_rows") ? std::optional(read.integer("cut_rows", 0)) : std::nullopt,
                    .unseen_score = read.optional_number("unseen_score")};
  HS_CHECK(coverage.unseen_types <= coverage.types && coverage.unseen_words <= coverage.words &&
               coverage.unseen_rows <= coverage.rows && coverage.cut_rows.value_or(0) <= coverage.rows,
           where, ": more unseen words, or unseen or cut rows, than there are");
  return coverage;
}

nlohmann::ordered_json to_json(const Cell& c) {
  check_finite(c);
  nlohmann::ordered_json curve = nlohmann::ordered_json::array();
  for (const CurvePoint& point : c.curve) {
    curve.push_back({{"step", point.step}, {"seconds", point.seconds}, {"validation_loss", point.validation_loss}});
    if (point.validation_score) curve.back()["validation_score"] = *point.validation_score;
  }
  nlohmann::ordered_json object = to_json(c.key);
  object.update({{"options", c.options},
                 {"weights_of", c.weights_of.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(c.weights_of)},
                 {"attention_parameters", c.attention_parameters},
                 {"attention_parameters_effective", c.attention_parameters_effective},
                 {"total_parameters", c.total_parameters},
                 {"embedding_parameters", c.embedding_parameters},
                 {"feed_forward_width", c.feed_forward_width},
                 {"cache_elements_per_token", c.cache_elements_per_token},
                 {"cache_bytes_per_token", c.cache_bytes_per_token},
                 {"validation_loss", c.validation_loss},
                 {"test_loss", c.test_loss},
                 {"quality", c.quality},
                 {"signature", c.signature},
                 {"scores", to_json(c.scores)},
                 {"steps", c.steps},
                 {"best_step", c.best_step},
                 {"tokens", c.tokens},
                 {"stopped_early", c.stopped_early},
                 {"training_seconds", c.training_seconds},
                 {"training_tokens_per_second", c.training_tokens_per_second},
                 {"decoding_tokens_per_second", c.decoding_tokens_per_second},
                 {"decoding_context", c.decoding_context},
                 {"attention_memory_bytes", c.attention_memory_bytes},
                 {"peak_memory_bytes", c.peak_memory_bytes},
                 {"model", c.model},
                 {"curve", std::move(curve)},
                 {"blocks", c.blocks}});
  if (!c.block_targets.empty()) object["block_targets"] = c.block_targets;
  if (c.source_cache_bytes_per_token > 0) object["source_cache_bytes_per_token"] = c.source_cache_bytes_per_token;
  if (c.outputs_per_second > 0) object["outputs_per_second"] = c.outputs_per_second;
  if (c.waited != WaitShares()) object["waited"] = to_json(c.waited);
  if (!c.examples.empty()) object["examples"] = c.examples;
  if (c.encoder_seed) object["encoder_seed"] = *c.encoder_seed;
  if (!c.tasks.empty()) {
    object["tasks"] = nlohmann::ordered_json::array();
    for (const TunedTask& task : c.tasks) object["tasks"].push_back(to_json(task));
  }
  return object;
}

Cell cell_from_json(const nlohmann::json& object, const std::string& where) {
  const JsonReader read(object, where);
  return {.key = key_from_json(object, where),
          .weights_of = weights_of(read),
          .encoder_seed = read.has("encoder_seed") ? std::optional(read.integer("encoder_seed", 0)) : std::nullopt,
          .options = read.has("options") ? read.object("options") : nlohmann::json::object(),
          .attention_parameters = read.integer("attention_parameters", 1),
          .attention_parameters_effective = read.integer("attention_parameters_effective", 1),
          .total_parameters = read.integer("total_parameters", 1),
          .embedding_parameters = read.has("embedding_parameters") ? read.integer("embedding_parameters", 0) : 0,
          .feed_forward_width = read.integer("feed_forward_width", 0),
          .cache_elements_per_token = read.integer("cache_elements_per_token", 0),
          .cache_bytes_per_token = read.integer("cache_bytes_per_token", 0),
          .source_cache_bytes_per_token =
              read.has("source_cache_bytes_per_token") ? read.integer("source_cache_bytes_per_token", 0) : 0,
          .validation_loss = loss_from_json(read, "validation_loss"),
          .test_loss = loss_from_json(read, "test_loss"),
          .quality = read.number("quality"),
          .signature = read.text("signature"),
          .scores = read.has("scores") ? read.list("scores", score_from_json) : scores_of_format_2(read),
          .blocks = read.numbers("blocks"),
          .block_targets = block_targets(read),
          .steps = read.integer("steps", 0),
          .best_step = read.integer("best_step", 0),
          .tokens = read.integer("tokens", 0),
          .stopped_early = read.flag("stopped_early"),
          .training_seconds = read.number_from("training_seconds", 0),
          .training_tokens_per_second = read.number_from("training_tokens_per_second", 0),
          .decoding_tokens_per_second = read.number_from("decoding_tokens_per_second", 0),
          .decoding_context = read.integer("decoding_context", 0),
          .outputs_per_second = read.has("outputs_per_second") ? read.number_from("outputs_per_second", 0) : 0,
          .waited = read.has("waited") ? waits_from_json(read.object("waited"), read.name("waited")) : WaitShares(),
          .attention_memory_bytes = read.integer("attention_memory_bytes", 0),
          .peak_memory_bytes = read.integer("peak_memory_bytes", 0),
          .curve = read.list("curve", point_from_json),
          .model = read.text("model"),
          .tasks = read.has("tasks") ? read.list("tasks", task_from_json) : std::vector<TunedTask>(),
          .examples = texts_from_json(read, "examples")};
}

nlohmann::ordered_json to_json(const Results& results) {
  const std::vector<VariantRow> rows = summarise(results);
  nlohmann::ordered_json object = {{"format", kFormat},
                                   {"format_version", kResultsFormatVersion},
                                   {"subject", to_json(results.subject)},
                                   {"match", results.match},
                                   {"command", results.command},
                                   {"complete", is_complete(results)},
                                   {"headline", headline(results, rows).text()}};
  object["reference"] = results.references.quality;
  object["peop_reference"] = results.references.peop;
  if (!results.looks.empty()) object["looks"] = results.looks;
  if (const BusySpeeds busy = busy_speeds(results, rows); busy.any()) object["busy_speeds"] = names_of(busy);
  for (const char* list : {"variants", "rows", "planned", "failed", "cells"})
    object[list] = nlohmann::ordered_json::array();
  object["environment"] = results.environment;
  object["options"] = results.options;
  for (const std::string& name : variant_names(results)) {
    object["variants"].push_back(to_json(variant_of(results, name)));
  }
  for (const VariantRow& row : rows) object["rows"].push_back(to_json(row));
  for (const CellKey& key : results.planned) object["planned"].push_back(to_json(key));
  for (const FailedCell& cell : results.failed) {
    object["failed"].push_back(to_json(cell.key));
    object["failed"].back()["reason"] = cell.reason;
  }
  for (const Cell& cell : results.cells) object["cells"].push_back(to_json(cell));
  return object;
}

std::string to_text(const nlohmann::ordered_json& object) {
  // Command lines and messages of the system need not be UTF-8.
  return object.dump(1, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Results results_from_json(const nlohmann::json& object, const std::string& where) {
  const JsonReader read(object, where);
  check_version(read, where);
  Results results{.subject = subject_from_json(read.object("subject"), where + ": subject"),
                  .match = read.text("match"),
                  .command = read.text("command"),
                  .environment = read.object("environment"),
                  .options = read.object("options"),
                  .planned = read.list("planned", key_from_json),
                  .cells = read.list("cells", cell_from_json),
                  .failed = read.list("failed", failed_from_json)};
  if (read.has("variants")) {  // else format 2
    results.variants = read.list("variants", variant_from_json);
    results.references = {.quality = read.text("reference"), .peop = read.text("peop_reference")};
  }
  if (read.has("looks")) results.looks = looks_from_json(object["looks"], where);
  check_results(results, where);
  return results;
}

Results read_results(const fs::path& file) {
  return results_from_json(read_json_file(file, kMostBytes), file.string());
}

}  // namespace headshare
