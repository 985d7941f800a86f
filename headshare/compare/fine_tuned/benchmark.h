// A benchmark is the tasks that encoders are compared on by fine-tuning; it is read once before any cell runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headshare/compare/fine_tuned/encoders.h"
#include "headshare/compare/options.h"
#include "headshare/models/checkpoint.h"
#include "headshare/report/results/results.h"

namespace headshare {

struct BenchmarkTask {
  std::string name;          // "glue/cola"
  std::string edition = {};  // "v1.1" for SQuAD; "" for the others
  int64_t examples = 0;
  int64_t validation_examples = 0;
  std::string fingerprint = {};  // identifies the data that train and score models
  bool scores_test = false;
  // Guessing the most frequent answer scores this many per cent (FineTuneJob::guessing) on the validation and on the
  // test part.
  std::optional<double> guessing = {};
  std::optional<double> test_guessing = {};
  std::vector<std::string> notes = {};  // sentences about its data
  double training_seconds = 0;          // of one cell with all learning rates; 0 where not asked for
};

// A rehearsal reads the data of every task as the cells will, so that a mistake in the last one's file costs no night.
// read_benchmark() throws Error in this command's words. With `timed` a few training steps of each task are measured.
struct Rehearsal {
  const ComparisonOptions& options;
  const LoadedEncoder& encoder;
  c10::Device device;
  bool timed = false;
};
std::vector<BenchmarkTask> read_benchmark(const Rehearsal& rehearsal);

// Returns an untrained encoder with the context that `options` ask for and a tokenizer of a few letters: enough to read
// the data before there are encoders.
LoadedEncoder stand_in_encoder(const ComparisonOptions& options);

// Describes the benchmark on which `encoders` are fine-tuned. Figures come from the test parts where every task has one
// with labels.
Subject benchmark_subject(const ComparisonOptions& options, const std::vector<BenchmarkTask>& tasks,
                          const EncoderSet& encoders);

}  // namespace headshare
