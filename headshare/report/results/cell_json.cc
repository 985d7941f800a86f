// Reads and writes cells as JSON.
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/json/json_reader.h"
#include "headshare/report/results/check_results.h"
#include "headshare/report/results/results_json.h"

namespace headshare {
namespace {

double loss_from_json(const JsonReader& read, const char* key) {
  const double loss = read.number(key);
  HS_CHECK(loss >= -kLossRounding, read.name(key), " must be at least 0, not ", loss);
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

FineTunedTask task_from_json(const nlohmann::json& object, const std::string& where) {
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

nlohmann::ordered_json to_json(const FineTunedTask& t) {
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

CellMachine machine_from_json(const nlohmann::json& object, const std::string& where) {
  const JsonReader read(object, where);
  return {.host = read.text("host"),
          .processor = read.text("processor"),
          .instructions = read.text("instructions"),
          .threads = read.integer("threads", 1),
          .device = read.text("device")};
}

nlohmann::ordered_json to_json(const CellMachine& machine) {
  return {{"host", machine.host},
          {"processor", machine.processor},
          {"instructions", machine.instructions},
          {"threads", machine.threads},
          {"device", machine.device}};
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
  for (const FineTunedTask& task : cell.tasks) {
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

// Returns the variant whose weights a cell has. In format 2 only el_lossless was not trained.
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

ModelSize size_from_json(const JsonReader& read) {
  ModelSize size;
  for (const SizeNumber& number : kSizeNumbers) {
    const bool may_lack = number.files != InResults::kAlways;
    if (!may_lack || read.has(number.name)) size.*number.member = read.integer(number.name, number.least);
  }
  return size;
}

}  // namespace

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

nlohmann::ordered_json to_json(const Cell& c) {
  check_finite(c);
  nlohmann::ordered_json curve = nlohmann::ordered_json::array();
  for (const CurvePoint& point : c.curve) {
    curve.push_back({{"step", point.step}, {"seconds", point.seconds}, {"validation_loss", point.validation_loss}});
    if (point.validation_score) curve.back()["validation_score"] = *point.validation_score;
  }
  nlohmann::ordered_json object = to_json(c.key);
  object.update(
      {{"options", c.options},
       {"weights_of", c.weights_of.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(c.weights_of)}});
  for (const SizeNumber& number : kSizeNumbers) {
    if (number.files != InResults::kWhereAny) object[number.name] = c.size.*number.member;
  }
  object.update({{"validation_loss", c.validation_loss},
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
  if (c.peak_device_bytes > 0) object["peak_device_bytes"] = c.peak_device_bytes;
  if (!c.block_targets.empty()) object["block_targets"] = c.block_targets;
  for (const SizeNumber& number : kSizeNumbers) {
    if (number.files == InResults::kWhereAny && c.size.*number.member > 0) object[number.name] = c.size.*number.member;
  }
  if (c.outputs_per_second > 0) object["outputs_per_second"] = c.outputs_per_second;
  if (c.waited != WaitShares()) object["waited"] = to_json(c.waited);
  if (!c.examples.empty()) object["examples"] = c.examples;
  if (c.encoder_seed) object["encoder_seed"] = *c.encoder_seed;
  if (!c.tasks.empty()) {
    object["tasks"] = nlohmann::ordered_json::array();
    for (const FineTunedTask& task : c.tasks) object["tasks"].push_back(to_json(task));
  }
  if (c.machine) object["machine"] = to_json(*c.machine);
  return object;
}

Cell cell_from_json(const nlohmann::json& object, const std::string& where) {
  const JsonReader read(object, where);
  return {.key = key_from_json(object, where),
          .weights_of = weights_of(read),
          .encoder_seed = read.has("encoder_seed") ? std::optional(read.integer("encoder_seed", 0)) : std::nullopt,
          .options = read.has("options") ? read.object("options") : nlohmann::json::object(),
          .size = size_from_json(read),
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
          .peak_device_bytes = read.has("peak_device_bytes") ? read.integer("peak_device_bytes", 0) : 0,
          .curve = read.list("curve", point_from_json),
          .model = read.text("model"),
          .tasks = read.has("tasks") ? read.list("tasks", task_from_json) : std::vector<FineTunedTask>(),
          .examples = read.has("examples") ? read.texts("examples") : std::vector<std::string>(),
          .machine = read.has("machine")
                         ? std::optional(machine_from_json(read.object("machine"), read.name("machine")))
                         : std::nullopt};
}

}  // namespace headshare
