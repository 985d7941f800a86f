#include "headshare/compare/comparison.h"

#include <algorithm>
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/base/file.h"
#include "headshare/models/checkpoint.h"
#include "headshare/train/file_observers.h"

namespace headshare {
namespace {

const EnumNames<Preset>& preset_names() {
  static const EnumNames<Preset> names = {
      {Preset::kQuick, "quick"}, {Preset::kSmall, "small"}, {Preset::kBase, "base"}};
  return names;
}

std::string cell_name(SchemeKind scheme, int64_t seed) { return scheme_name(scheme) + "-seed" + std::to_string(seed); }

nlohmann::json read_object(const fs::path& path) {
  nlohmann::json object = nlohmann::json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  HS_CHECK(object.is_object(), path.string(), " is not a JSON object: it is damaged; delete it to run that cell again");
  return object;
}

double number(const nlohmann::json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  HS_CHECK(found != object.end() && found->is_number(), where, ": \"", key, "\" is missing or not a number");
  return found->get<double>();
}

LanguageModelOptions with_scheme(const ComparisonOptions& options, SchemeKind scheme) {
  LanguageModelOptions language = options.language;
  language.model.attention.scheme = scheme;
  return language;
}

// Scores the checkpoint best on validation on the test part.
void score_best(LanguageModelTask& task, Cell* cell, Observer& observer) {
  const fs::path weights = fs::path(cell->training.best_model) / "model.safetensors";
  load_tensors(*task.model(), read_tensors(weights), weights.string());
  const Evaluation test = task.evaluate(
      Part::kTest, [&observer](int64_t done, int64_t total) { observer.on_evaluation_progress(done, total); });
  cell->validation_loss = cell->training.best_loss;
  cell->test_loss = test.loss;
  for (const Score& score : test.scores) {
    if (score.name == "perplexity") {
      cell->perplexity = score.value;
      cell->signature = score.signature;
    } else {
      cell->bits_per_byte = score.value;
    }
  }
}

Cell train_cell(const ComparisonOptions& options, const LanguageData& data, const CellPlan& plan,
                const fs::path& directory, c10::Device device, Observer& observer,
                const std::function<bool()>& stop_requested) {
  RunDirectory run(directory);
  TrainOptions train = options.train;
  train.seed = plan.seed;
  LanguageModelTask task(with_scheme(options, plan.scheme), data, static_cast<uint64_t>(plan.seed), device,
                         {.moving_averages = train.ema_decay > 0 ? 1 : 0, .recompute = train.activation_checkpointing});
  Trainer trainer(task, train, run, {&observer}, stop_requested);
  const std::optional<int64_t> resumed_after = trainer.resume();
  if (!resumed_after) run.clear();
  const auto metrics = make_jsonl_observer(directory / "metrics.jsonl", resumed_after);
  trainer.observe(metrics.get());
  Cell cell{.scheme = plan.scheme, .seed = plan.seed};
  cell.training = trainer.run();
  HS_CHECK(!cell.training.best_model.empty(), cell_name(plan.scheme, plan.seed),
           " never reached a finite validation loss; try a smaller --learning-rate");
  score_best(task, &cell, observer);
  write_file(directory / "cell.json", to_json(cell).dump(2) + "\n");
  return cell;
}

// `el_lossless` has the weights of `mha`, and so its quality.
std::vector<Cell> rewritten_as_el(const std::vector<Cell>& cells) {
  std::vector<Cell> rewritten;
  for (const Cell& cell : cells) {
    if (cell.scheme != SchemeKind::kMha) continue;
    rewritten.push_back(cell);
    rewritten.back().scheme = SchemeKind::kElLossless;
  }
  return rewritten;
}

}  // namespace

Fields fields(ComparisonOptions& o) {
  Fields list = {
      field("preset", &o.preset,
            "sizes and steps to start from: quick is minutes, small an hour, base a night on 2 cores", preset_names()),
      field("schemes", &o.schemes, "attention schemes to compare, or all"),
      field("seeds", &o.seeds, "models per scheme, each with its own initial values and batches",
            {.min = 1, .max = 1000}),
  };
  for (Field& one : fields(o.language)) {
    if (one.name != "scheme") list.push_back(std::move(one));
  }
  append(&list, fields(o.train));
  return list;
}

Preset parse_preset(const std::string& name) {
  Preset preset = Preset::kQuick;
  field("preset", &preset, "", preset_names()).parse(name);
  return preset;
}

ComparisonOptions preset_options(Preset preset) {
  struct Sizes {
    int64_t layers, d_model, heads, context, batch, steps, vocabulary;
    double learning_rate;
  };
  const Sizes sizes = preset == Preset::kQuick   ? Sizes{2, 96, 6, 96, 12, 400, 1024, 3e-3}
                      : preset == Preset::kSmall ? Sizes{4, 192, 6, 128, 16, 2000, 8192, 1e-3}
                                                 : Sizes{6, 384, 6, 256, 32, 10000, 16384, 6e-4};
  ComparisonOptions options;
  options.preset = preset;
  options.language.model.layers = sizes.layers;
  options.language.model.attention.d_model = sizes.d_model;
  options.language.model.attention.heads = sizes.heads;
  options.language.model.context = sizes.context;
  options.language.batch.batch_size = sizes.batch;
  options.language.tokenizer.vocabulary_size = sizes.vocabulary;
  options.language.data.test_fraction = 0.1;
  options.train.steps = sizes.steps;
  options.train.schedule.learning_rate = sizes.learning_rate;
  options.train.keep_last = 1;
  return options;
}

std::vector<SchemeKind> chosen_schemes(const std::vector<std::string>& names) {
  std::vector<SchemeKind> wanted;
  bool all = false;
  for (const std::string& name : names) {
    if (name == "all") {
      all = true;
    } else {
      wanted.push_back(parse_scheme(name));
    }
  }
  std::vector<SchemeKind> chosen;
  for (const auto& [kind, name] : scheme_names()) {
    if (all || std::find(wanted.begin(), wanted.end(), kind) != wanted.end()) chosen.push_back(kind);
  }
  HS_CHECK(!chosen.empty(), "no scheme was named; give --schemes mha,sha,... or all");
  return chosen;
}

std::string why_not(const ComparisonOptions& options, SchemeKind scheme) {
  try {
    resolve(with_scheme(options, scheme).model);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

nlohmann::json to_json(const Cell& c) {
  return {{"scheme", scheme_name(c.scheme)},
          {"seed", c.seed},
          {"validation_loss", c.validation_loss},
          {"test_loss", c.test_loss},
          {"perplexity", c.perplexity},
          {"bits_per_byte", c.bits_per_byte ? nlohmann::json(*c.bits_per_byte) : nlohmann::json()},
          {"signature", c.signature},
          {"training", to_json(c.training)}};
}

Cell cell_from_json(const nlohmann::json& object, const std::string& where) {
  const auto text = [&](const nlohmann::json& from, const char* key) {
    const auto found = from.find(key);
    HS_CHECK(found != from.end() && found->is_string(), where, ": \"", key, "\" is missing or not a text");
    return found->get<std::string>();
  };
  const auto flag = [&](const nlohmann::json& from, const char* key) {
    const auto found = from.find(key);
    HS_CHECK(found != from.end() && found->is_boolean(), where, ": \"", key, "\" is missing or not true or false");
    return found->get<bool>();
  };
  HS_CHECK(object.contains("training") && object["training"].is_object(), where, ": \"training\" is missing");
  const nlohmann::json& training = object["training"];
  Cell cell{.scheme = parse_scheme(text(object, "scheme")),
            .seed = static_cast<int64_t>(number(object, "seed", where)),
            .validation_loss = number(object, "validation_loss", where),
            .test_loss = number(object, "test_loss", where),
            .perplexity = number(object, "perplexity", where),
            .signature = text(object, "signature")};
  if (object.contains("bits_per_byte") && object["bits_per_byte"].is_number()) {
    cell.bits_per_byte = object["bits_per_byte"].get<double>();
  }
  cell.training = {.steps = static_cast<int64_t>(number(training, "steps", where)),
                   .tokens = static_cast<int64_t>(number(training, "tokens", where)),
                   .best_loss = number(training, "best_loss", where),
                   .best_step = static_cast<int64_t>(number(training, "best_step", where)),
                   .stopped_early = flag(training, "stopped_early"),
                   .seconds = number(training, "seconds", where),
                   .tokens_per_second = number(training, "tokens_per_second", where),
                   .best_model = text(training, "best_model")};
  return cell;
}

void check_parts(const LanguageData& data) {
  HS_CHECK(!data.splits.validation.empty(), "a comparison picks each model's best checkpoint on validation text, and ",
           "there is none; set --validation-fraction above 0, or --validation-text");
  HS_CHECK(!data.splits.test.empty(), "a comparison reports figures of a test part, and there is none; set ",
           "--test-fraction above 0, or --test-text");
}

std::vector<Cell> run_comparison(const ComparisonOptions& options, const LanguageData& data,
                                 const std::string& directory, c10::Device device, ComparisonObserver& observer,
                                 const std::function<bool()>& stop_requested) {
  check_parts(data);
  std::vector<SchemeKind> schemes = chosen_schemes(options.schemes);
  const bool rewrite = std::erase(schemes, SchemeKind::kElLossless) > 0;
  HS_CHECK(!rewrite || std::find(schemes.begin(), schemes.end(), SchemeKind::kMha) != schemes.end(),
           "el_lossless is mha rewritten for decoding and is not trained by itself; add mha to --schemes");
  const bool rewritable = rewrite && why_not(options, SchemeKind::kElLossless).empty();
  std::erase_if(schemes, [&](SchemeKind scheme) { return !why_not(options, scheme).empty(); });
  HS_CHECK(!schemes.empty(), "none of the schemes can be trained with these options");
  const int64_t count = static_cast<int64_t>(schemes.size()) * options.seeds;

  std::vector<Cell> cells;
  int64_t number = 0;
  // Seeds outside: an interrupted comparison has whole rows rather than whole columns.
  for (int64_t i = 0; i < options.seeds; ++i) {
    for (const SchemeKind scheme : schemes) {
      const int64_t seed = options.train.seed + i;
      const fs::path home = fs::path(directory) / "cells" / cell_name(scheme, seed);
      const fs::path finished = home / "cell.json";
      const CellPlan plan{scheme, seed, ++number, count, fs::exists(finished)};
      observer.on_cell(plan);
      cells.push_back(plan.finished ? cell_from_json(read_object(finished), finished.string())
                                    : train_cell(options, data, plan, home, device, observer, stop_requested));
    }
  }
  if (rewritable) {
    for (Cell& cell : rewritten_as_el(cells)) cells.push_back(std::move(cell));
  }
  return cells;
}

}  // namespace headshare
