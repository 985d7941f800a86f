#include "headshare/compare/fine_tuned/encoders.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"
#include "headshare/models/checkpoint.h"
#include "headshare/report/results/results_json.h"
#include "headshare/report/statistics/variant_rows.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

// Encoders learn one of these subjects from text.
constexpr std::array kSubjects = {"masked-language-model", "three-way"};
constexpr const char* kWidth = "feed-forward-width";

// All variants must have the same values of these options, unless a variant sets one itself.
constexpr std::array kShared = {"vocabulary", "layers",     "d-model", "heads",    "context",
                                "positions",  "activation", "norms",   "segments", kWidth};

const Cell* find_cell(const Results& results, const CellKey& key) {
  const auto found =
      std::find_if(results.cells.begin(), results.cells.end(), [&](const Cell& cell) { return cell.key == key; });
  return found == results.cells.end() ? nullptr : &*found;
}

std::string why_missing(const Results& results, const CellKey& key) {
  for (const FailedCell& failed : results.failed) {
    if (failed.key == key) return "its training failed: " + failed.reason;
  }
  return join_text("its training with seed ", key.seed, " is not finished");
}

// A Description holds the properties of an encoder that are compared.
struct Description {
  nlohmann::json options;
  std::string tokenizer;
};

Description describe(const fs::path& checkpoint) {
  const ModelOptions options = read_options(checkpoint);
  HS_CHECK(options.find<EncoderOptions>() != nullptr, checkpoint.string(), " is no encoder");
  return {.options = stored_option_values(options), .tokenizer = fingerprint(*load_tokenizer(checkpoint))};
}

std::string size_text(const nlohmann::json& options) {
  const auto number = [&options](const char* name) { return options.value(name, int64_t{0}); };
  return join_text(number("layers"), " layers of ", number("d-model"), ", ", number("steps"), " steps");
}

// Throws Error where two encoders differ in more than their variants' own options.
void check_same(const EncoderSet& set, const std::pair<Variant, Description>& first,
                const std::pair<Variant, Description>& other) {
  const auto& [variant, one] = other;
  const auto refuse = [&](const std::string& what) {
    throw Error(join_text("the encoders in ", set.home.string(), " cannot be compared: ", what, " of ", variant.name,
                          " and of ", first.first.name, " differ"));
  };
  const auto tokenizer = [](const Variant& variant) { return variant.options.value("tokenizer", ""); };
  const bool same_embedding = tokenizer(variant) == tokenizer(first.first);
  if (same_embedding && one.tokenizer != first.second.tokenizer) refuse("the tokenizers");
  for (const char* option : kShared) {
    if (set.parameters_matched() && option == std::string(kWidth)) continue;
    if (!same_embedding && option == std::string("vocabulary")) continue;
    if (variant.options.contains(option) || first.first.options.contains(option)) continue;
    const nlohmann::json& a = one.options.at(option);
    const nlohmann::json& b = first.second.options.at(option);
    if (a != b) refuse(join_text(option, " ", a.dump(), " and ", b.dump()));
  }
}

void add_encoder(const Results& results, const CellKey& key, EncoderSet* set) {
  const EncoderSet::Key encoder{key.variant, key.seed};
  const Cell* cell = find_cell(results, key);
  if (cell == nullptr) {
    set->missing[encoder] = why_missing(results, key);
  } else if (!fs::exists(set->home / cell->model / "model.safetensors")) {
    set->missing[encoder] = join_text("its model is gone from ", (set->home / cell->model).string());
  } else {
    set->checkpoints[encoder] = set->home / cell->model;
  }
}

}  // namespace

EncoderSet find_encoders(const fs::path& home) {
  const fs::path file = home / "results.json";
  HS_CHECK(fs::exists(file), "--encoders ", home.string(), " has no results.json: name a directory that `headshare ",
           "compare --task mlm --out DIR` (or three-way) wrote, with at least one finished model");
  const Results results = read_results(file);
  HS_CHECK(std::find(kSubjects.begin(), kSubjects.end(), results.subject.name) != kSubjects.end(), "--encoders ",
           home.string(), " holds a comparison of another kind (", results.subject.name,
           "); encoders come from compare --task mlm or three-way");
  HS_CHECK(!results.planned.empty(), "--encoders ", home.string(), " holds a comparison of no model");
  EncoderSet set{.home = home,
                 .data = results.subject.data,
                 .objective = results.subject.name == "three-way" ? "three-way" : "masked LM",
                 .size = size_text(results.options),
                 .match = results.match};
  std::set<int64_t> seeds;
  for (const CellKey& key : results.planned) seeds.insert(key.seed);
  set.seeds.assign(seeds.begin(), seeds.end());
  for (const VariantRow& row : summarise(results)) {
    if (!is_trained(row.scheme)) continue;
    set.variants.push_back(variant_of(results, row.variant));
    for (const int64_t seed : set.seeds) add_encoder(results, {row.variant, row.best.setting, seed}, &set);
  }
  return set;
}

bool EncoderSet::has(const std::string& variant) const {
  const auto first = checkpoints.lower_bound({variant, std::numeric_limits<int64_t>::min()});
  return first != checkpoints.end() && first->first.first == variant;
}

int64_t encoder_seed(const EncoderSet& set, int64_t seed) {
  if (set.seeds.size() == 1) return set.seeds.front();
  const bool there = std::find(set.seeds.begin(), set.seeds.end(), seed) != set.seeds.end();
  HS_CHECK(there, "fine-tuning with seed ", seed, " begins with the encoder of that seed, and the encoders in ",
           set.home.string(), " have the seeds ", set.seeds.front(), " to ", set.seeds.back(), "; use --seed ",
           set.seeds.front(), " and at most --seeds ", set.seeds.size(), ", or train more encoders");
  return seed;
}

fs::path encoder_of(const EncoderSet& set, const std::string& variant, int64_t seed) {
  const EncoderSet::Key key{variant, encoder_seed(set, seed)};
  const auto found = set.checkpoints.find(key);
  if (found != set.checkpoints.end()) return found->second;
  const auto reason = set.missing.find(key);
  throw Error(join_text("there is no encoder of ", variant, set.seeds.size() > 1 ? join_text(" seed ", key.second) : "",
                        " in ", set.home.string(), ": ",
                        reason == set.missing.end() ? "it was not among the --schemes and --variants of that comparison"
                                                    : reason->second));
}

fs::path first_encoder(const EncoderSet& set, const std::string& variant) {
  for (const int64_t seed : set.seeds) {
    const auto found = set.checkpoints.find({variant, seed});
    if (found != set.checkpoints.end()) return found->second;
  }
  return encoder_of(set, variant, set.seeds.front());  // says why there is none
}

void check_comparable(const EncoderSet& set, const std::vector<Variant>& variants) {
  std::optional<Description> first;
  for (const Variant& variant : variants) {
    for (const int64_t seed : set.seeds) {
      const auto found = set.checkpoints.find({variant.name, seed});
      if (found == set.checkpoints.end()) continue;
      const Description one = describe(found->second);
      if (!first) first = one;
      check_same(set, {variants.front(), *first}, {variant, one});
    }
  }
}

}  // namespace headshare
