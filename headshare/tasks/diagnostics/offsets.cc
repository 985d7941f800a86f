// The task offsets has random tokens; at every position it asks which tokens stood 1, 3, 7, ... positions back, each
// answered by an output of its own.
#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/tasks/diagnostics/kinds.h"

namespace headshare {
namespace {

class Offsets : public SequenceGenerator {
 public:
  explicit Offsets(const DiagnosticOptions& o)
      : alphabet_(o.alphabet), length_(o.sequence_length), offsets_(o.offsets) {
    HS_CHECK(!offsets_.empty(), "the task offsets has nothing to predict: give at least one number with --offsets");
    for (const int64_t offset : offsets_) {
      HS_CHECK(offset < length_, "an offset must be smaller than the sequence: ", offset, " places back in ", length_,
               " tokens; change --offsets or --sequence-length");
      HS_CHECK(std::count(offsets_.begin(), offsets_.end(), offset) == 1, "--offsets names ", offset,
               " more than once");
    }
  }

  int64_t vocabulary() const override { return alphabet_; }
  int64_t length() const override { return length_; }
  int64_t outputs() const override { return static_cast<int64_t>(offsets_.size()); }
  double chance() const override { return 1.0 / static_cast<double>(alphabet_); }

  int64_t targets_per_sequence() const override {
    int64_t targets = 0;
    for (const int64_t offset : offsets_) targets += length_ - offset;
    return targets;
  }

  void fill(Philox& random, std::span<int64_t> inputs, std::span<int64_t> targets) const override {
    for (int64_t& token : inputs) token = static_cast<int64_t>(random.below(static_cast<uint64_t>(alphabet_)));
    for (size_t output = 0; output < offsets_.size(); ++output) {
      const auto offset = static_cast<size_t>(offsets_[output]);
      std::copy(inputs.begin(), inputs.end() - offsets_[output],
                targets.begin() + static_cast<std::ptrdiff_t>(output * inputs.size() + offset));
    }
  }

 private:
  int64_t alphabet_, length_;
  std::vector<int64_t> offsets_;
};

DiagnosticDefaults offsets_defaults() {
  DiagnosticDefaults d{
      .options = {.kind = DiagnosticKind::kOffsets, .sequence_length = 64, .alphabet = 32, .offsets = {1, 3, 7, 12}},
      .steps = 400,
      .learning_rate = 6e-3};
  d.options.model.layers = 1;
  d.options.model.attention.d_model = 64;
  return d;
}

}  // namespace

Diagnostic offsets_diagnostic() {
  return {.kind = DiagnosticKind::kOffsets,
          .sentence =
              "At every position, name the tokens that stood at several fixed distances before it: heads must "
              "look at different places at once.",
          .fields = {"sequence-length", "alphabet", "offsets"},
          .defaults = offsets_defaults(),
          .make = [](const DiagnosticOptions& o) -> std::unique_ptr<SequenceGenerator> {
            return std::make_unique<Offsets>(o);
          }};
}

}  // namespace headshare
