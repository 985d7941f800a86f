#include "headshare/tasks/diagnostics/diagnostic.h"

#include <algorithm>
#include <numeric>

#include "headshare/base/error.h"
#include "headshare/tasks/diagnostics/kinds.h"

namespace headshare {
namespace {

constexpr double kMostTokens = 1 << 16;      // of an alphabet, or of a sequence
constexpr double kMostSequences = 10000000;  // of a held-out part of the data

}  // namespace

std::vector<int64_t> draw_distinct(Philox& random, int64_t bound, int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(bound));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {  // the first steps of a Fisher-Yates shuffle
    std::swap(numbers[i], numbers[i + random.below(numbers.size() - i)]);
  }
  numbers.resize(static_cast<size_t>(count));
  return numbers;
}

const EnumNames<DiagnosticKind>& diagnostic_names() {
  static const EnumNames<DiagnosticKind> names = {
      {DiagnosticKind::kOffsets, "offsets"},          {DiagnosticKind::kRecall, "recall"},
      {DiagnosticKind::kInduction, "induction"},      {DiagnosticKind::kDyck, "dyck"},
      {DiagnosticKind::kJointRecall, "joint-recall"}, {DiagnosticKind::kKGram, "k-gram"}};
  return names;
}

std::string diagnostic_name(DiagnosticKind kind) { return enum_name(diagnostic_names(), kind); }

Fields fields(DiagnosticOptions& o) {
  return {
      field("sequence-length", &o.sequence_length, "offsets, induction, dyck, k-gram: tokens in a sequence",
            {.min = 2, .max = kMostTokens}),
      field("alphabet", &o.alphabet,
            "offsets, induction, k-gram: different tokens; recall, joint-recall: different values, of recall as many "
            "for each token of a key",
            {.min = 2, .max = kMostTokens}),
      field("offsets", &o.offsets, "offsets: how many places back the tokens to predict are",
            {.min = 1, .max = kMostTokens}),
      field("pairs", &o.pairs, "recall, joint-recall: key-value pairs in a sequence", {.min = 1, .max = kMostTokens}),
      field("queries", &o.queries,
            "recall: keys asked for after the pairs; joint-recall: questions; k-gram: places asked about",
            {.min = 1, .max = kMostTokens}),
      field("key-length", &o.key_length, "recall: tokens of a key; with several no part of a key is enough to find it",
            {.min = 1, .max = 8}),
      field("lookups", &o.lookups, "joint-recall: values that one question asks for", {.min = 1, .max = 64}),
      field("order", &o.order, "k-gram: tokens that the next one depends on", {.min = 1, .max = 16}),
      field("bracket-kinds", &o.bracket_kinds, "dyck: kinds of brackets", {.min = 1, .max = kMostTokens}),
      field("bracket-depth", &o.bracket_depth, "dyck: brackets open at once", {.min = 1, .max = kMostTokens}),
      field("validation-sequences", &o.validation_sequences, "diagnostic tasks: sequences to choose the best model by",
            {.min = 1, .max = kMostSequences}),
      field("test-sequences", &o.test_sequences, "diagnostic tasks: sequences the result is measured on",
            {.min = 1, .max = kMostSequences}),
  };
}

const std::vector<Diagnostic>& diagnostics() {
  static const std::vector<Diagnostic> all = {offsets_diagnostic(), recall_diagnostic(),       induction_diagnostic(),
                                              dyck_diagnostic(),    joint_recall_diagnostic(), kgram_diagnostic()};
  return all;
}

const Diagnostic& diagnostic(DiagnosticKind kind) {
  for (const Diagnostic& one : diagnostics()) {
    if (one.kind == kind) return one;
  }
  throw Error("unknown diagnostic task");
}

std::string sentence(DiagnosticKind kind) { return diagnostic(kind).sentence; }
DiagnosticDefaults diagnostic_defaults(DiagnosticKind kind) { return diagnostic(kind).defaults; }

std::unique_ptr<SequenceGenerator> make_generator(const DiagnosticOptions& options) {
  return diagnostic(options.kind).make(options);
}

std::vector<DiagnosticKind> tasks_with(const std::string& field) {
  std::vector<DiagnosticKind> all, claiming;
  for (const Diagnostic& one : diagnostics()) {
    all.push_back(one.kind);
    if (std::find(one.fields.begin(), one.fields.end(), field) != one.fields.end()) claiming.push_back(one.kind);
  }
  return claiming.empty() ? all : claiming;
}

nlohmann::json difficulty(DiagnosticOptions options) {
  const nlohmann::json values = to_json(fields(options));
  nlohmann::json own = nlohmann::json::object();
  const Diagnostic& task = diagnostic(options.kind);
  for (const std::string& name : task.fields) {
    const auto unsaid = task.unsaid.find(name);
    if (unsaid == task.unsaid.end() || *unsaid != values.at(name)) own[name] = values.at(name);
  }
  return own;
}

DecoderOptions decoder_options(const DiagnosticOptions& options) {
  const auto generator = make_generator(options);
  DecoderOptions model = options.model;
  model.vocabulary = generator->vocabulary();
  model.context = generator->length();
  // The output heads are the task's; with tied embeddings the decoder's own output layer holds no parameter of its own.
  model.tie_embeddings = true;
  HS_CHECK(!model.embedding_width, "embedding-width is ", *model.embedding_width,
           ": the few tokens of a diagnostic task need no factorised embedding; leave --embedding-width out");
  return resolve(model);
}

}  // namespace headshare
