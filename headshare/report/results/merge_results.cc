#include "headshare/report/results/merge_results.h"

#include <algorithm>
#include <array>

#include "headshare/base/error.h"
#include "headshare/report/results/results_json.h"

namespace headshare {
namespace {

// These options may differ between runs of one table: they choose cells, or no loss depends on them.
constexpr std::array kFreeOptions = {
    "schemes", "variants",  "embeddings",   "reference",     "peop-reference", "seeds",    "seed",     "sweep",
    "preset",  "peop",      "scheme-steps", "until-decided", "max-seeds",      "threads",  "device",   "out",
    "resume",  "overwrite", "json",         "latex",         "dry-run",        "encoders", "cache-dir"};

// These options say where the data lay. The fingerprint says what the data is.
constexpr std::array kDataPaths = {"text",           "validation-text",     "test-text",
                                   "tokenizer-path", "hash-merges",         "finetune-data",
                                   "finetune-train", "finetune-validation", "finetune-test"};

bool is_free(const std::string& name) {
  return std::find(kFreeOptions.begin(), kFreeOptions.end(), name) != kFreeOptions.end();
}

bool is_data_path(const std::string& name) {
  return std::find(kDataPaths.begin(), kDataPaths.end(), name) != kDataPaths.end();
}

// Tells whether an option of a later program was not set: results from before there was that option mean the same.
bool is_unset(const nlohmann::json& value) {
  return value.is_null() || value == false || value == "" || value == "auto" || (value.is_array() && value.empty());
}

nlohmann::json fixed_options(const Results& results) {
  nlohmann::json fixed = nlohmann::json::object();
  for (const auto& [name, value] : results.options.items()) {
    const bool known = is_data_path(name) && !results.subject.fingerprint.empty();
    if (!is_free(name) && !known) fixed[name] = value;
  }
  return fixed;
}

bool same_options(const nlohmann::json& a, const nlohmann::json& b, const nlohmann::json& usual) {
  const auto in_other = [&usual](const nlohmann::json& one, const nlohmann::json& other) {
    const auto items = one.items();
    return std::all_of(items.begin(), items.end(), [&](const auto& item) {
      const auto found = other.find(item.key());
      if (found != other.end()) return *found == item.value();
      const auto untouched = usual.find(item.key());
      return is_unset(item.value()) || (untouched != usual.end() && *untouched == item.value());
    });
  };
  return in_other(a, b) && in_other(b, a);
}

// Compares data by fingerprint where both have one: programs may describe the same data in other words.
bool same_data(const Subject& a, const Subject& b) {
  if (a.fingerprint.empty() || b.fingerprint.empty()) return a.data == b.data;
  return a.fingerprint == b.fingerprint;
}

// Compares what was fine-tuned; files from before it was recorded go by the rest.
bool same_encoders(const Subject& a, const Subject& b) {
  return a.encoders.empty() || b.encoders.empty() || a.encoders == b.encoders;
}

// Compares what guessing reaches; files of benchmarks from before it was recorded go by the rest.
bool same_chance(const Subject& a, const Subject& b) {
  const bool recorded = a.task_chances.empty() == b.task_chances.empty();
  return !recorded || (a.chance == b.chance && a.task_chances == b.task_chances);
}

bool same_subject(const Subject& a, const Subject& b) {
  return same_data(a, b) && same_encoders(a, b) && a.name == b.name && a.measure == b.measure &&
         a.direction == b.direction && a.block == b.block && a.has_test_part == b.has_test_part && same_chance(a, b) &&
         a.full_scale == b.full_scale && a.tasks == b.tasks && a.examples == b.examples;
}

// Compares what was made equal: where that is not steps, it was so among the schemes and variants of one run.
bool same_match(const Results& a, const Results& b) {
  if (a.match != b.match) return false;
  const auto same = [&](const char* option) {
    const nlohmann::json none = nlohmann::json::array();  // for results from before there was that option
    return a.options.value(option, none) == b.options.value(option, none);
  };
  return a.match == "steps" || (same("schemes") && same("variants") && same("embeddings") && same("scheme-steps"));
}

// A name stands for the same options in both.
bool same_variants(const Results& a, const Results& b) {
  const std::vector<std::string> theirs = variant_names(b);
  const std::vector<std::string> ours = variant_names(a);
  return std::all_of(ours.begin(), ours.end(), [&](const std::string& name) {
    return std::find(theirs.begin(), theirs.end(), name) == theirs.end() || variant_of(a, name) == variant_of(b, name);
  });
}

// Tells whether the user named none, so that they were chosen among what the run compared.
bool has_default_references(const Results& results) {
  const auto is_empty = [&](const char* option) {
    return results.options.contains(option) && results.options.at(option) == "";
  };
  return is_empty("reference") && is_empty("peop-reference");
}

bool same_references(const Results& a, const Results& b) {
  return a.references == b.references || (has_default_references(a) && has_default_references(b));
}

bool one_table(const Results& a, const Results& b, const nlohmann::json& usual) {
  return same_references(a, b) && same_variants(a, b) && same_subject(a.subject, b.subject) && same_match(a, b) &&
         same_options(fixed_options(a), fixed_options(b), usual);
}

// Returns a cell without what depends on the clock, the machine and the directory, and what only the newer format
// records.
nlohmann::ordered_json lasting(const Cell& cell) {
  nlohmann::ordered_json object = to_json(cell);
  for (const char* name :
       {"training_seconds", "training_tokens_per_second", "decoding_tokens_per_second", "outputs_per_second", "waited",
        "attention_memory_bytes", "peak_memory_bytes", "peak_device_bytes", "machine", "model", "options"}) {
    object.erase(name);
  }
  for (auto& point : object["curve"]) point.erase("seconds");
  for (auto& score : object["scores"]) score.erase("signature");
  return object;
}

bool holds(const Results& results, const CellKey& key) {
  return std::find(results.planned.begin(), results.planned.end(), key) != results.planned.end();
}

void add_cell(NamedResults* into, const Cell& cell, const std::string& from) {
  for (const Cell& known : into->results.cells) {
    if (known.key != cell.key) continue;
    HS_CHECK(lasting(known) == lasting(cell), name_of(cell.key), " differs between ", into->name, " and ", from,
             ": they cannot be one table; report them one by one");
    return;
  }
  std::erase_if(into->results.failed, [&](const FailedCell& failed) { return failed.key == cell.key; });
  into->results.cells.push_back(cell);
}

void add_failed(Results* into, const FailedCell& failed) {
  const auto same = [&](const auto& other) { return other.key == failed.key; };
  if (std::any_of(into->cells.begin(), into->cells.end(), same)) return;
  if (std::any_of(into->failed.begin(), into->failed.end(), same)) return;
  into->failed.push_back(failed);
}

// Sorts variants in the order they first came, each with its settings and seeds together.
void sort_like_planned(Results* results) {
  const std::vector<std::string> names = variant_names(*results);
  const auto rank = [&](const CellKey& key) {
    return std::find(names.begin(), names.end(), key.variant) - names.begin();
  };
  std::stable_sort(results->planned.begin(), results->planned.end(),
                   [&](const CellKey& a, const CellKey& b) { return rank(a) < rank(b); });
  const auto place = [&](const Cell& cell) {
    return std::find(results->planned.begin(), results->planned.end(), cell.key) - results->planned.begin();
  };
  std::stable_sort(results->cells.begin(), results->cells.end(),
                   [&](const Cell& a, const Cell& b) { return place(a) < place(b); });
}

// The options of a comparison that do not hold for the merged one hold for its models still.
void move_options_to_cells(Results* results, const nlohmann::json& shared) {
  for (const auto& [name, value] : results->options.items()) {
    if (shared.contains(name)) continue;
    for (Cell& cell : results->cells) {
      if (!cell.options.empty() && !cell.options.contains(name)) cell.options[name] = value;
    }
  }
  results->options = shared;
}

nlohmann::json common_options(const Results& a, const Results& b) {
  nlohmann::json common = nlohmann::json::object();
  for (const auto& [name, value] : a.options.items()) {
    if (b.options.contains(name) && b.options.at(name) == value) common[name] = value;
  }
  return common;
}

// Takes the references that one run of all would have chosen: a run without mha took another variant with its scheme.
void merge_references(const References& more, References* references) {
  if (more.quality == "mha") references->quality = more.quality;
  if (more.peop == "sha") references->peop = more.peop;
}

// Data that one comparison looked at several times stay so: the intervals allow for the looks of the one that looked
// most often, whose margin was asked about.
void keep_looks(const Results& more, Results* results, nlohmann::json* common) {
  const Results& asked = results->looks.size() < more.looks.size() ? more : *results;
  if (asked.looks.empty()) return;
  if (asked.options.contains("until-decided")) (*common)["until-decided"] = asked.options.at("until-decided");
  results->looks = asked.looks;
}

void merge_into(NamedResults* into, NamedResults more) {
  Results& results = into->results;
  merge_references(more.results.references, &results.references);
  nlohmann::json common = common_options(results, more.results);
  keep_looks(more.results, &results, &common);
  for (Results* one : {&results, &more.results}) move_options_to_cells(one, common);
  for (const Variant& one : more.results.variants) {
    if (std::find(results.variants.begin(), results.variants.end(), one) == results.variants.end()) {
      results.variants.push_back(one);
    }
  }
  if (results.subject.task_chances.empty()) {
    results.subject.task_chances = more.results.subject.task_chances;
    results.subject.chance = more.results.subject.chance;
  }
  for (const Cell& cell : more.results.cells) add_cell(into, cell, more.name);
  for (const FailedCell& failed : more.results.failed) add_failed(&results, failed);
  for (const CellKey& key : more.results.planned) {
    if (!holds(results, key)) results.planned.push_back(key);
  }
  sort_like_planned(&results);
  if (results.command != more.results.command) results.command += "\n" + more.results.command;
  // One environment stays as it is; several stand under the names of their runs.
  if (results.environment != more.results.environment) {
    if (!results.environment.contains(into->name)) results.environment = {{into->name, results.environment}};
    results.environment[more.name] = more.results.environment;
  }
}

}  // namespace

std::vector<NamedResults> merge_results(std::vector<NamedResults> all, const nlohmann::json& usual) {
  std::vector<NamedResults> merged;
  for (NamedResults& one : all) {
    const auto same = std::find_if(merged.begin(), merged.end(), [&](const NamedResults& other) {
      return one_table(other.results, one.results, usual);
    });
    if (same == merged.end()) {
      merged.push_back(std::move(one));
    } else {
      merge_into(&*same, std::move(one));
    }
  }
  return merged;
}

}  // namespace headshare
