#include "headshare/compare/encoders.h"

#include <algorithm>
#include <array>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"
#include "headshare/models/checkpoint.h"
#include "headshare/report/statistics/variant_rows.h"
#include "headshare/report/statistics/wording.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

constexpr const char* kSubject = "masked-language-model";
constexpr const char* kWidth = "feed-forward-width";

// What has to be the same for every variant that is not made of it.
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

// An encoder with what is compared of it.
struct Description {
  nlohmann::json options;
  std::string tokenizer;
};

Description describe(const fs::path& checkpoint) {
  const ModelOptions options = read_options(checkpoint);
  HS_CHECK(!is_causal(options), checkpoint.string(), " is no encoder");
  return {.options = stored_option_values(options), .tokenizer = fingerprint(*load_tokenizer(checkpoint))};
}

std::string size_text(const nlohmann::json& options) {
  const auto number = [&options](const char* name) { return options.value(name, int64_t{0}); };
  return join_text(number("layers"), " layers of ", number("d-model"), ", ", number("steps"), " steps");
}

}  // namespace

EncoderSet find_encoders(const fs::path& home) {
  const fs::path file = home / "results.json";
  HS_CHECK(fs::exists(file), "--encoders ", home.string(), " has no results.json: name a directory that `headshare ",
           "compare --task mlm --out DIR` wrote, with at least one finished model");
  const Results results = read_results(file);
  HS_CHECK(results.subject.name == kSubject, "--encoders ", home.string(), " holds a comparison of another kind (",
           results.subject.name, "); encoders come from compare --task mlm");
  EncoderSet set{
      .home = home, .data = results.subject.data, .size = size_text(results.options), .match = results.match};
  for (size_t i = 0; i < results.planned.size(); ++i) {
    set.seed = i == 0 ? results.planned[i].seed : std::min(set.seed, results.planned[i].seed);
  }
  for (const VariantRow& row : summarise(results)) {
    if (!is_trained(row.scheme)) continue;
    set.variants.push_back(variant_of(results, row.variant));
    const CellKey key{row.variant, row.best.setting, set.seed};
    const Cell* cell = find_cell(results, key);
    if (cell == nullptr) {
      set.missing[row.variant] = why_missing(results, key);
    } else if (!fs::exists(home / cell->model / "model.safetensors")) {
      set.missing[row.variant] = join_text("its model is gone from ", (home / cell->model).string());
    } else {
      set.checkpoints[row.variant] = home / cell->model;
    }
  }
  return set;
}

fs::path encoder_of(const EncoderSet& set, const std::string& variant) {
  const auto found = set.checkpoints.find(variant);
  if (found != set.checkpoints.end()) return found->second;
  const auto reason = set.missing.find(variant);
  throw Error(join_text("there is no encoder of ", variant, " in ", set.home.string(), ": ",
                        reason == set.missing.end() ? "it was not among the --schemes and --variants of that comparison"
                                                    : reason->second));
}

void check_comparable(const EncoderSet& set, const std::vector<Variant>& variants) {
  std::optional<Description> first;
  for (const Variant& variant : variants) {
    const Description one = describe(encoder_of(set, variant.name));
    if (!first) first = one;
    const auto refuse = [&](const std::string& what) {
      throw Error(join_text("the encoders in ", set.home.string(), " cannot be compared: ", what, " of ", variant.name,
                            " and of ", variants.front().name, " differ"));
    };
    if (one.tokenizer != first->tokenizer) refuse("the tokenizers");
    for (const char* option : kShared) {
      if (set.parameters_matched() && option == std::string(kWidth)) continue;
      if (variant.options.contains(option) || variants.front().options.contains(option)) continue;
      const nlohmann::json& a = one.options.at(option);
      const nlohmann::json& b = first->options.at(option);
      if (a != b) refuse(join_text(option, " ", a.dump(), " and ", b.dump()));
    }
  }
}

}  // namespace headshare
