// Training the same model once per attention scheme and seed, on the same batches in the same order
// with the same initial values for what they share, and what came out of it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "headshare/attention/options.h"
#include "headshare/tasks/language_model.h"
#include "headshare/train/trainer.h"

namespace headshare {

inline constexpr int64_t kResultsFormatVersion = 1;

enum class Preset { kQuick, kSmall, kBase };

struct ComparisonOptions {
  Preset preset = Preset::kQuick;
  std::vector<std::string> schemes = {"all"};
  int64_t seeds = 1;
  LanguageModelOptions language;
  TrainOptions train;  // its seed is that of the first model; the others count up from it
};

Fields fields(ComparisonOptions& options);

// The preset's sizes, steps and rates, to be set before the user's own.
ComparisonOptions preset_options(Preset preset);
Preset parse_preset(const std::string& name);

// The schemes that "all" and the names in the list stand for, in the registry's order. An unknown
// name is refused with the nearest.
std::vector<SchemeKind> chosen_schemes(const std::vector<std::string>& names);

// One trained model.
struct Cell {
  SchemeKind scheme = SchemeKind::kMha;
  int64_t seed = 0;
  TrainResult training = {};
  double validation_loss = 0;  // of the checkpoint best on validation
  double test_loss = 0;        // of the same checkpoint, on the test part
  double perplexity = 0;       // on the test part
  std::optional<double> bits_per_byte = {};
  std::string signature = {};  // of the perplexity
};

nlohmann::json to_json(const Cell& cell);
Cell cell_from_json(const nlohmann::json& object, const std::string& where);

// What watches a comparison: called before each cell.
struct CellPlan {
  SchemeKind scheme;
  int64_t seed;
  int64_t number;  // 1-based
  int64_t count;
  bool finished;  // taken over from an earlier, interrupted run
};

class ComparisonObserver : public Observer {
 public:
  virtual void on_cell(const CellPlan&) {}
};

// Why a scheme cannot be part of this comparison ("el_shared ... rotary"), or "" when it can.
std::string why_not(const ComparisonOptions& options, SchemeKind scheme);

// Throws Error when there is no validation or no test text: the figures are those of the test part for
// the checkpoint that was best on validation. run_comparison begins with it.
void check_parts(const LanguageData& data);

// Trains every cell below `directory`/cells. Cells finished there before (with the same options) are
// taken over, an unfinished one goes on from its last checkpoint. `el_lossless` is not trained: it is
// `mha` with another cache. Throws Interrupted when asked to stop.
std::vector<Cell> run_comparison(const ComparisonOptions& options, const LanguageData& data,
                                 const std::string& directory, c10::Device device, ComparisonObserver& observer,
                                 const std::function<bool()>& stop_requested);

}  // namespace headshare
