// The table of a comparison: one row per variant, with what its seeds say together and against the references.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headshare/metrics/statistics.h"
#include "headshare/report/results/results.h"

namespace headshare {

// A score beside the quality, over the seeds.
struct ScoreRow {
  std::string name;
  Summary summary;
  // Of the mean, where each seed's score has one: Student t from three seeds on, else the mean of the seeds' own.
  std::optional<Interval> interval = {};
};

// One variant with one setting of a sweep, over its finished seeds.
struct SettingRow {
  std::string setting;
  std::vector<int64_t> seeds = {};  // finished
  int64_t planned = 0;              // seeds that were asked for
  // Of the seeds; their count is 0 where none is finished.
  Summary validation_loss = {};
  Summary test_loss = {};
  Summary quality = {};
  std::optional<Interval> quality_interval = {};  // of its mean, by the rule beside it
  std::string quality_interval_rule = {};         // in words, or why there is none
  std::vector<ScoreRow> scores = {};              // those that every finished seed has
};

// A variant less the reference in the compared number: the test loss where the measure is perplexity, else the
// measure. Paired: only seeds that both have count, block by block.
struct Difference {
  int64_t seeds = 0;
  double mean = 0;
  std::vector<double> by_seed = {};             // what the mean is of
  std::optional<JudgedDifference> judged = {};  // together with those of all trained variants, which it is one of
  std::optional<Interval> over_seeds = {};      // Student t of this one alone, two seeds or more
  std::optional<Interval> over_blocks = {};     // bootstrap over evaluation blocks, differences averaged over the seeds
  std::string test = {};                        // how it was judged, in words

  // What readers judge by, and what a test says from kFewestPairsForPValue seeds on.
  std::optional<Interval> interval() const { return judged ? std::optional(judged->interval) : std::nullopt; }
  std::optional<double> p_value() const {
    return judged && seeds >= kFewestPairsForPValue ? std::optional(judged->p_value) : std::nullopt;
  }
};

// One task of a benchmark over the finished seeds; summaries of none where none is.
struct TaskRow {
  std::string task;
  Summary score = {};
  // By name; without those that are not a number with some seed.
  std::vector<ScoreRow> metrics = {};
  std::optional<Coverage> coverage = {};  // the data's, without a score
  Summary unseen_score = {};              // of the rows with words that no training example has
};

// What is known of a variant; zeros and empty where it was not measured.
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

// In the order in which the variants are planned; those of which nothing is finished have a row too.
std::vector<VariantRow> summarise(const Results& results);

// The score of that name; of no seed where there is none.
ScoreRow score_of(const std::vector<ScoreRow>& scores, const std::string& name);

// The names of all scores that any of the rows has, in the order in which they first come.
std::vector<std::string> score_names(const std::vector<VariantRow>& rows);

// The finished cells a row stands for.
std::vector<const Cell*> cells_of(const Results& results, const std::string& variant, const std::string& setting);

}  // namespace headshare
