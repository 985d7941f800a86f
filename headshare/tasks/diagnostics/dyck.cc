// The task dyck has well-nested brackets of several kinds; wherever the next token closes a bracket, it asks which
// kind.
#include "headshare/base/error.h"
#include "headshare/tasks/diagnostics/kinds.h"

namespace headshare {
namespace {

// Kind k opens with token k and closes with token kinds + k; all are closed at the end. While both are
// allowed, opening goes on to open and closing to close three times in four: with a fair coin half of all
// brackets would close at once, and reading the last token would answer for them.
class Dyck : public SequenceGenerator {
 public:
  explicit Dyck(const DiagnosticOptions& o)
      : kinds_(o.bracket_kinds), depth_(o.bracket_depth), length_(o.sequence_length) {
    HS_CHECK(length_ % 2 == 0, "every bracket is closed, so the length must be even, not ", length_,
             "; set --sequence-length to ", length_ - 1, " or ", length_ + 1);
    HS_CHECK(2 * depth_ <= length_, depth_, " brackets open at once need ", 2 * depth_, " tokens, not ", length_,
             "; use a smaller --bracket-depth or a larger --sequence-length");
  }

  int64_t vocabulary() const override { return 2 * kinds_; }
  int64_t length() const override { return length_; }
  int64_t targets_per_sequence() const override { return length_ / 2; }
  double chance() const override { return 1.0 / static_cast<double>(kinds_); }

  void fill(Philox& random, std::span<int64_t> inputs, std::span<int64_t> targets) const override {
    std::vector<int64_t> open;
    bool opening = true;
    for (size_t i = 0; i < inputs.size(); ++i) {
      opening = opens(random, opening, open.size(), inputs.size() - i);
      if (opening) {
        open.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(kinds_))));
        inputs[i] = open.back();
      } else {
        inputs[i] = targets[i - 1] = kinds_ + open.back();
        open.pop_back();
      }
    }
  }

 private:
  bool opens(Philox& random, bool opening, size_t open, size_t left) const {
    if (open == 0) return true;
    if (open == left || open == static_cast<size_t>(depth_)) return false;
    return (random.below(4) > 0) == opening;
  }

  int64_t kinds_, depth_, length_;
};

// One head can count and another find, so that schemes lie closer together here than elsewhere; narrow
// heads tell them apart.
DiagnosticDefaults dyck_defaults() {
  DiagnosticDefaults d{
      .options = {.kind = DiagnosticKind::kDyck, .sequence_length = 32, .bracket_kinds = 16, .bracket_depth = 12},
      .steps = 400,
      .learning_rate = 1.2e-2};
  d.options.model.layers = 2;
  d.options.model.attention.d_model = 32;
  return d;
}

}  // namespace

Diagnostic dyck_diagnostic() {
  return {.kind = DiagnosticKind::kDyck,
          .sentence =
              "Name the bracket that closes next in a well-nested text: heads must count how deep the text is "
              "nested and find the last bracket still open.",
          .fields = {"sequence-length", "bracket-kinds", "bracket-depth"},
          .defaults = dyck_defaults(),
          .make = [](const DiagnosticOptions& o) -> std::unique_ptr<SequenceGenerator> {
            return std::make_unique<Dyck>(o);
          }};
}

}  // namespace headshare
