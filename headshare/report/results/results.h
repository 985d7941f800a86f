// Results hold what a comparison found, as plain facts: what was compared, one Cell per trained model, what failed.
// results.json holds all of it (results_json.h), so that tables, figures and reports can be made again, or from several
// comparisons together, without the models. Knows no tensors.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "headshare/metrics/coverage.h"
#include "headshare/metrics/model_size.h"
#include "headshare/metrics/score.h"
#include "headshare/metrics/subject.h"

namespace headshare {

struct CurvePoint {
  int64_t step = 0;
  double seconds = 0;          // of training so far
  double validation_loss = 0;  // mean nats per target
  // This is the measure on the validation part, where it is more than exp of the loss; files from before have none.
  std::optional<double> validation_score = {};
};

// A variant is one of what stands side by side: a set of options under a name.
struct Variant {
  std::string name;                                   // "mha", "mha-rms"
  std::string scheme;                                 // of its attention
  nlohmann::json options = nlohmann::json::object();  // those that make it: {"scheme": "mha", "norm": "rms"}

  bool operator==(const Variant&) const = default;
};

// Returns an attention scheme and nothing else, under its name.
Variant scheme_variant(const std::string& scheme);

// These are the variants, by name, that the others are measured against. They need not be there.
struct References {
  std::string quality = "mha";  // of differences, PRR and the memory saved
  std::string peop = "sha";     // of quality per added parameter

  bool operator==(const References&) const = default;
};

// A key tells one cell of the grid from the others.
struct CellKey {
  std::string variant;  // its name
  std::string setting;  // "learning-rate=0.001" of a sweep; "" without one
  int64_t seed = 0;

  bool operator==(const CellKey&) const = default;
};

// This is what a fine-tuned encoder reached on one task.
struct FineTunedTask {
  std::string task;              // "glue/cola"
  double score = 0;              // of Subject::full_scale: the mean of the metrics
  std::vector<Score> metrics{};  // as the task's scorer gives them; may be not a number where that is 0/0
  int64_t examples = 0;          // scored
  double learning_rate = 0;      // the best on validation of those tried
  double best_epoch = 0;
  double validation_loss = 0;             // of that epoch
  std::optional<Coverage> coverage = {};  // of the part that is scored; its score is of Subject::full_scale
};

// A share says how long threads of the program stood ready and waited for a core while a speed was measured, all
// threads together, as a share of that time: 0 on a machine that does nothing else. It is nothing where it is not
// known, as in files from before.
struct WaitShares {
  std::optional<double> training = {};
  std::optional<double> decoding = {};
  std::optional<double> outputs = {};

  bool operator==(const WaitShares&) const = default;
};

// This machine trained and measured a cell. Where several did in turn, it is the one that finished the cell.
struct CellMachine {
  std::string host;          // its name
  std::string processor;     // "AMD EPYC 9354"
  std::string instructions;  // the set that libtorch's kernels chose: "AVX512"
  int64_t threads = 0;
  std::string device;  // "cpu", or the GPU's model

  bool operator==(const CellMachine&) const = default;
};

// A cell is one trained model; for a benchmark an encoder's models for all tasks.
struct Cell {
  CellKey key;
  std::string weights_of = {};  // the variant whose weights it has, where it was not trained itself (el_lossless)
  // A fine-tuned encoder has the seed of its pre-training. Files from before it was kept have none: one encoder for
  // all.
  std::optional<int64_t> encoder_seed = {};
  // The options have the defaults of the model and of its evaluations filled in; only those that differ from the
  // comparison's are here. Empty in files of format 2.
  nlohmann::json options = nlohmann::json::object();

  ModelSize size = {};

  double validation_loss = 0;   // of the checkpoint best on validation
  double test_loss = 0;         // of the same checkpoint, on the part that is reported; mean nats per target
  double quality = 0;           // Subject::measure, on the same part
  std::string signature = {};   // of the quality: how it was computed
  std::vector<Score> scores{};  // what else was found on that part, by name: "bits-per-byte", "pseudo-perplexity"
  // The compared number (test loss where the measure is a perplexity, else the measure) is given for each block of the
  // reported part: the same blocks for every cell, so that differences can be taken block by block.
  std::vector<double> blocks = {};
  std::vector<int64_t> block_targets = {};  // what each block weighs; empty in files from before: all the same

  int64_t steps = 0;
  int64_t best_step = 0;
  int64_t tokens = 0;
  bool stopped_early = false;
  double training_seconds = 0;  // evaluations left out
  double training_tokens_per_second = 0;
  double decoding_tokens_per_second = 0;
  int64_t decoding_context = 0;        // tokens in the cache while decoding was timed, one sequence
  double outputs_per_second = 0;       // of what it wrote to be scored: sentences of a translation, in batches
  WaitShares waited = {};              // of the three speeds
  int64_t attention_memory_bytes = 0;  // one attention sub-layer in a training step, measured by allocation
  int64_t peak_memory_bytes = 0;       // of the whole process that trained it
  int64_t peak_device_bytes = 0;       // of its tensors on a card; 0 on the CPU
  std::vector<CurvePoint> curve = {};
  std::string model = {};  // directory of the best checkpoint, relative to results.json; a benchmark's: of the answers
  std::vector<FineTunedTask> tasks = {};    // those of Subject::tasks, in their order
  std::vector<std::string> examples = {};   // what the model wrote for Subject::examples, in their order
  std::optional<CellMachine> machine = {};  // files from before it was noted have none
};

struct FailedCell {
  CellKey key;
  std::string reason;  // one sentence
};

struct Results {
  Subject subject;
  std::string match = "steps";  // what was made equal: "steps", "time", "parameters"
  std::string command = {};     // that made it
  nlohmann::ordered_json environment = {};
  nlohmann::json options = {};         // all of them, by name
  std::vector<Variant> variants = {};  // may leave out what is only the scheme of its name
  References references = {};
  // After these seeds it was looked whether the question is decided, where seeds are added until it is (each look is
  // another chance to err); empty where their number was fixed beforehand.
  std::vector<int64_t> looks = {};
  std::vector<CellKey> planned = {};
  std::vector<Cell> cells = {};  // in the order of `planned`, as far as they are finished
  std::vector<FailedCell> failed = {};
};

// Returns "mha with learning-rate=0.001 seed 2", for example.
std::string name_of(const CellKey& key);

// Returns the variant of that name: the scheme of the name where it is not listed.
Variant variant_of(const Results& results, const std::string& name);

// Returns the names of the variants that are planned, in the order in which they first come.
std::vector<std::string> variant_names(const Results& results);

// Tells whether every planned cell is finished or failed.
bool is_complete(const Results& results);

}  // namespace headshare
