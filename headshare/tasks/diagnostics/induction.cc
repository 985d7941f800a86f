// The task induction has random tokens, then the same tokens again and again from the first; it asks for the next
// token. How many tokens there are before they repeat differs from sequence to sequence, so that no fixed distance
// solves it: the head must find the token before and read what followed.
#include "headshare/base/error.h"
#include "headshare/tasks/diagnostics/kinds.h"

namespace headshare {
namespace {

// The repeated part begins after L tokens, L uniform in [T / 4, T / 2]; these are distinct, so that what followed a
// token is never in doubt. The task asks for the tokens after the places T / 2 .. T - 1: always as many, and always in
// the repeated part.
class Induction : public SequenceGenerator {
 public:
  explicit Induction(const DiagnosticOptions& o) : alphabet_(o.alphabet), length_(o.sequence_length) {
    HS_CHECK(length_ >= 8, "the task induction needs sequences of at least 8 tokens to begin a repetition in, not ",
             length_, "; set --sequence-length");
    HS_CHECK(longest() <= alphabet_, "the tokens before the repetition are distinct: up to ", longest(),
             " (half the sequence) of an alphabet of ", alphabet_,
             "; use a larger --alphabet or a smaller --sequence-length");
  }

  int64_t vocabulary() const override { return alphabet_; }
  int64_t length() const override { return length_; }
  int64_t targets_per_sequence() const override { return length_ - longest(); }
  double chance() const override { return 1.0 / static_cast<double>(alphabet_); }

  void fill(Philox& random, std::span<int64_t> inputs, std::span<int64_t> targets) const override {
    const int64_t shortest = length_ / 4;
    const auto lengths = static_cast<uint64_t>(longest() - shortest + 1);
    const int64_t period = shortest + static_cast<int64_t>(random.below(lengths));
    const std::vector<int64_t> tokens = draw_distinct(random, alphabet_, period);
    const auto at = [&](size_t place) { return tokens[place % tokens.size()]; };
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = at(i);
    for (auto i = static_cast<size_t>(longest()); i < inputs.size(); ++i) targets[i] = at(i + 1);
  }

 private:
  int64_t longest() const { return length_ / 2; }

  int64_t alphabet_, length_;
};

DiagnosticDefaults induction_defaults() {
  DiagnosticDefaults d{.options = {.kind = DiagnosticKind::kInduction, .sequence_length = 32, .alphabet = 32},
                       .steps = 400,
                       .learning_rate = 1e-3};
  d.options.model.layers = 2;
  d.options.model.attention.d_model = 64;
  return d;
}

}  // namespace

Diagnostic induction_diagnostic() {
  return {.kind = DiagnosticKind::kInduction,
          .sentence =
              "Go on with a sequence that repeats after a length that is never the same: heads must find where "
              "the present token stood before and name what followed it.",
          .fields = {"sequence-length", "alphabet"},
          .defaults = induction_defaults(),
          .make = [](const DiagnosticOptions& o) -> std::unique_ptr<SequenceGenerator> {
            return std::make_unique<Induction>(o);
          }};
}

}  // namespace headshare
