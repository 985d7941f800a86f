// Diagnostic tasks are small synthetic problems that ask something definite of attention heads, so that schemes which
// hardly differ in a small language model separate within a minute. Nothing is read: sequences come from random
// streams.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headshare/base/options/field.h"
#include "headshare/base/rng.h"
#include "headshare/models/blocks/options.h"

namespace headshare {

enum class DiagnosticKind { kOffsets, kRecall, kInduction, kDyck, kJointRecall, kKGram };

const EnumNames<DiagnosticKind>& diagnostic_names();
std::string diagnostic_name(DiagnosticKind kind);

// DiagnosticOptions determine the task but for the seed. A task reads the difficulty options that its
// Diagnostic::fields names; diagnostic_defaults() has values for them that fit together.
struct DiagnosticOptions {
  DiagnosticKind kind = DiagnosticKind::kOffsets;
  int64_t sequence_length = 32;
  int64_t alphabet = 16;
  std::vector<int64_t> offsets = {1, 3, 7, 12};
  int64_t pairs = 8;
  int64_t queries = 8;
  int64_t key_length = 1;
  int64_t lookups = 4;
  int64_t order = 2;
  int64_t bracket_kinds = 4;
  int64_t bracket_depth = 8;
  int64_t validation_sequences = 256;
  int64_t test_sequences = 1024;
  int64_t batch_size = 32;    // sequences in a micro-batch; listed by BatchOptions
  DecoderOptions model = {};  // its vocabulary and context come from the task
};

// Lists the options above but for `kind`, `batch_size` and `model`.
Fields fields(DiagnosticOptions& options);

// A SequenceGenerator makes the sequences of one task.
class SequenceGenerator {
 public:
  virtual ~SequenceGenerator() = default;

  virtual int64_t vocabulary() const = 0;            // V: tokens, inputs and targets alike
  virtual int64_t length() const = 0;                // T
  virtual int64_t outputs() const { return 1; }      // predictions made at each position
  virtual int64_t targets_per_sequence() const = 0;  // the same for every sequence

  // Returns the accuracy expected of a model that knows the task but not the sequence.
  virtual double chance() const = 0;

  // Writes one sequence: inputs [T], targets [outputs, T]. The targets hold kIgnoredTarget before, and keep it where
  // nothing is asked.
  virtual void fill(Philox& random, std::span<int64_t> inputs, std::span<int64_t> targets) const = 0;
};

struct DiagnosticDefaults {
  DiagnosticOptions options;
  int64_t steps = 0;
  double learning_rate = 0;
};

// A Diagnostic is what the program knows about a task.
struct Diagnostic {
  DiagnosticKind kind;
  std::string sentence;             // what it asks of attention heads
  std::vector<std::string> fields;  // names of its difficulty options among fields(DiagnosticOptions&)
  // `unsaid` has those of `fields` that came later: descriptions leave them out at these values, so that older
  // descriptions stay as they were.
  nlohmann::json unsaid = nlohmann::json::object();
  DiagnosticDefaults defaults;  // separate the schemes within about 20 seconds each on two cores
  // Makes the task's sequences. Throws Error for options that cannot be met, with both numbers and the way out.
  std::unique_ptr<SequenceGenerator> (*make)(const DiagnosticOptions& options);
};

const std::vector<Diagnostic>& diagnostics();
const Diagnostic& diagnostic(DiagnosticKind kind);

// These functions are shorthands for the members above.
std::string sentence(DiagnosticKind kind);
DiagnosticDefaults diagnostic_defaults(DiagnosticKind kind);
std::unique_ptr<SequenceGenerator> make_generator(const DiagnosticOptions& options);

// Lists the tasks that an option of fields(DiagnosticOptions&) belongs to: `pairs` is recall's alone; an option that no
// task claims (`test-sequences`) belongs to all.
std::vector<DiagnosticKind> tasks_with(const std::string& field);

// Returns the difficulty options of `options.kind` as one JSON object, without those at their `unsaid` values.
nlohmann::json difficulty(DiagnosticOptions options);

// Returns the options of the task's decoder, resolved.
DecoderOptions decoder_options(const DiagnosticOptions& options);

}  // namespace headshare
