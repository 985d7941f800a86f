// Makes the table of a comparison: one row per variant, with what its seeds say together and against the references.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headshare/metrics/statistics.h"
#include "headshare/report/results/results.h"

namespace headshare {

// This is a score beside the quality, over the seeds.
struct ScoreRow {
  std::string name;
  Summary summary;
  // The interval is of the mean, where each seed's score has one: Student t from three seeds on, else the mean of the
  // seeds' own.
  std::optional<Interval> interval = {};
};

// This is one variant with one setting of a sweep, over its finished seeds.
struct SettingRow {
  std::string setting;
  std::vector<int64_t> seeds = {};  // finished
  int64_t planned = 0;              // seeds that were asked for
  // The summaries are of the seeds; their count is 0 where none is finished.
  Summary validation_loss = {};
  Summary test_loss = {};
  Summary quality = {};
  std::optional<Interval> quality_interval = {};  // of its mean, by the rule beside it
  std::string quality_interval_rule = {};         // in words, or why there is none
  std::vector<ScoreRow> scores = {};              // those that every finished seed has
};

// A difference is a variant less the reference in the compared number: the test loss where the measure is perplexity,
// else the measure. It is paired: only seeds that both have count, block by block.
struct Difference {
  int64_t seeds = 0;
  double mean = 0;
  std::vector<double> by_seed = {};             // what the mean is of
  std::optional<JudgedDifference> judged = {};  // together with those of all trained variants, which it is one of
  std::optional<Interval> over_seeds = {};      // Student t of this one alone, two seeds or more
  std::optional<Interval> over_blocks = {};     // bootstrap over evaluation blocks, differences averaged over the seeds
  std::string test = {};                        // how it was judged, in words

  // Readers judge by the interval; a test says the p-value from kFewestPairsForPValue seeds on.
  std::optional<Interval> interval() const { return judged ? std::optional(judged->interval) : std::nullopt; }
  std::optional<double> p_value() const {
    return judged && seeds >= kFewestPairsForPValue ? std::optional(judged->p_value) : std::nullopt;
  }
};

// This is one task of a benchmark over the finished seeds; the summaries are of none where none is finished.
struct TaskRow {
  std::string task;
  Summary score = {};
  // The metrics go by name; those that are not a number with some seed are missing.
  std::vector<ScoreRow> metrics = {};
  std::optional<Coverage> coverage = {};  // the data's, without a score
  Summary unseen_score = {};              // of the rows with words that no training example has
};

// A row has what is known of a variant; zeros and empty where it was not measured.
struct VariantRow {
  std::string variant;          // its name
  std::string scheme;           // of its attention
  SettingRow best = {};         // the setting with most finished seeds, among those the one best on validation
  std::string weights_of = {};  // the variant whose weights it has, where it was not trained itself

  ModelSize size = {};

  std::optional<Difference> against_reference = {};
  std::string why_no_difference = {};
  Retention prr = {};
  Retention peop = {};
  Retention table_prr = {};  // where embeddings are compared: against the same variant with a table of tokens

  double attention_memory_bytes = 0;                          // medians over the seeds from here on
  std::optional<double> attention_memory_saved_percent = {};  // against the reference
  double peak_memory_bytes = 0;
  double peak_device_bytes = 0;
  double training_tokens_per_second = 0;
  double decoding_tokens_per_second = 0;
  int64_t decoding_context = 0;
  double outputs_per_second = 0;

  std::vector<TaskRow> tasks = {};        // of a benchmark, those of Subject::tasks
  std::vector<FailedCell> failed = {};    // of every setting
  std::vector<SettingRow> settings = {};  // all of them, as planned; `best` is one of these

  bool finished() const { return !best.seeds.empty(); }
  bool trained() const { return weights_of.empty(); }
};

// Returns rows in the order in which the variants are planned; those of which nothing is finished have a row too.
std::vector<VariantRow> summarise(const Results& results);

// Returns the score of that name; of no seed where there is none.
ScoreRow score_of(const std::vector<ScoreRow>& scores, const std::string& name);

// Returns the names of all scores that any of the rows has, in the order in which they first come.
std::vector<std::string> score_names(const std::vector<VariantRow>& rows);

// Returns the finished cells that a row stands for.
std::vector<const Cell*> cells_of(const Results& results, const std::string& variant, const std::string& setting);

}  // namespace headshare
