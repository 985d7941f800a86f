// The task joint-recall has key-value pairs, one token each, then questions. A question asks for the values of several
// keys at once, each answered by an output of its own; the keys of a question are the same in every sequence.
#include "headshare/base/error.h"
#include "headshare/tasks/diagnostics/kinds.h"

namespace headshare {
namespace {

// The table of questions is the task's, not a seed's: every model answers the same one.
constexpr uint64_t kTableSeed = 0;

// The pair of key k and value v is the token k * alphabet + v; the `pairs` questions follow the pairs. Values are the
// tokens 0 .. alphabet - 1 of the answers.
class JointRecall : public SequenceGenerator {
 public:
  explicit JointRecall(const DiagnosticOptions& o)
      : alphabet_(o.alphabet), pairs_(o.pairs), queries_(o.queries), lookups_(o.lookups) {
    HS_CHECK(lookups_ <= pairs_, "a question asks for different keys: ", lookups_, " of ", pairs_,
             "; use fewer --lookups or more --pairs");
    for (int64_t question = 0; question < pairs_; ++question) {
      Philox random(stream_key(kTableSeed, join_text("joint-recall question ", question)));
      keys_of_.push_back(draw_distinct(random, pairs_, lookups_));
    }
  }

  int64_t vocabulary() const override { return pairs_ * alphabet_ + pairs_; }
  int64_t length() const override { return pairs_ + queries_; }
  int64_t outputs() const override { return lookups_; }
  int64_t targets_per_sequence() const override { return lookups_ * queries_; }
  double chance() const override { return 1.0 / static_cast<double>(alphabet_); }

  void fill(Philox& random, std::span<int64_t> inputs, std::span<int64_t> targets) const override {
    const std::vector<int64_t> keys = draw_distinct(random, pairs_, pairs_);  // each once, in random order
    std::vector<int64_t> value_of(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto value = static_cast<int64_t>(random.below(static_cast<uint64_t>(alphabet_)));
      value_of[static_cast<size_t>(keys[i])] = value;
      inputs[i] = keys[i] * alphabet_ + value;
    }
    for (size_t place = keys.size(); place < inputs.size(); ++place) {
      const size_t question = random.below(keys.size());
      inputs[place] = pairs_ * alphabet_ + static_cast<int64_t>(question);
      for (size_t output = 0; output < static_cast<size_t>(lookups_); ++output) {
        targets[output * inputs.size() + place] = value_of[static_cast<size_t>(keys_of_[question][output])];
      }
    }
  }

 private:
  int64_t alphabet_, pairs_, queries_, lookups_;
  std::vector<std::vector<int64_t>> keys_of_;  // of each question
};

DiagnosticDefaults joint_recall_defaults() {
  DiagnosticDefaults d{
      .options = {.kind = DiagnosticKind::kJointRecall, .alphabet = 8, .pairs = 8, .queries = 16, .lookups = 4},
      .steps = 800,
      .learning_rate = 3e-3};
  d.options.model.layers = 1;
  d.options.model.attention.d_model = 64;
  return d;
}

}  // namespace

Diagnostic joint_recall_diagnostic() {
  return {.kind = DiagnosticKind::kJointRecall,
          .sentence =
              "After a list of key-value pairs, name the values of several keys at one position: heads must look up "
              "different contents at once.",
          .fields = {"alphabet", "pairs", "queries", "lookups"},
          .defaults = joint_recall_defaults(),
          .make = [](const DiagnosticOptions& o) -> std::unique_ptr<SequenceGenerator> {
            return std::make_unique<JointRecall>(o);
          }};
}

}  // namespace headshare
