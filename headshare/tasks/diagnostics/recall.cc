// The task recall has key-value pairs, then keys drawn from them again and again, each followed by its value; it asks
// for that value when its key has just been read. A key is one token, or several of which no part names it alone.
#include <cmath>

#include "headshare/base/error.h"
#include "headshare/tasks/diagnostics/kinds.h"

namespace headshare {
namespace {

// The tokens of the i-th part of keys are i * alphabet .. (i + 1) * alphabet - 1; the `alphabet` tokens after those of
// the last part are values. With several parts, n tokens are drawn for each, and every combination of them is a key.
class Recall : public SequenceGenerator {
 public:
  explicit Recall(const DiagnosticOptions& o)
      : alphabet_(o.alphabet),
        pairs_(o.pairs),
        queries_(o.queries),
        parts_(o.key_length),
        choices_(std::llround(std::pow(static_cast<double>(pairs_), 1.0 / static_cast<double>(parts_)))) {
    HS_CHECK(parts_ > 1 || pairs_ <= alphabet_, "each pair needs a key of its own: ", pairs_, " pairs, ", alphabet_,
             " keys; use fewer --pairs or a larger --alphabet");
    HS_CHECK(std::llround(std::pow(static_cast<double>(choices_), static_cast<double>(parts_))) == pairs_, "keys of ",
             parts_, " tokens are all combinations of n tokens for each: n to the power of ", parts_,
             " pairs, such as ", std::llround(std::pow(static_cast<double>(choices_ + 1), static_cast<double>(parts_))),
             ", not ", pairs_, "; change --pairs or --key-length");
    HS_CHECK(choices_ <= alphabet_, "keys of ", parts_, " tokens for ", pairs_, " pairs take ", choices_,
             " tokens for each part, and there are ", alphabet_, "; use fewer --pairs or a larger --alphabet");
  }

  int64_t vocabulary() const override { return (parts_ + 1) * alphabet_; }
  int64_t length() const override { return (parts_ + 1) * (pairs_ + queries_); }
  int64_t targets_per_sequence() const override { return queries_; }
  double chance() const override { return 1.0 / static_cast<double>(alphabet_); }

  void fill(Philox& random, std::span<int64_t> inputs, std::span<int64_t> targets) const override {
    const auto pairs = static_cast<size_t>(pairs_);
    const auto width = static_cast<size_t>(parts_ + 1);  // of a key and its value
    const std::vector<std::vector<int64_t>> keys = draw_keys(random);
    for (size_t i = 0; i < pairs; ++i) {
      std::copy(keys[i].begin(), keys[i].end(), inputs.begin() + static_cast<std::ptrdiff_t>(width * i));
      inputs[width * (i + 1) - 1] =
          parts_ * alphabet_ + static_cast<int64_t>(random.below(static_cast<uint64_t>(alphabet_)));
    }
    for (size_t place = width * pairs; place < inputs.size(); place += width) {
      const size_t pair = random.below(pairs);
      for (size_t i = 0; i < width; ++i) inputs[place + i] = inputs[width * pair + i];
      targets[place + width - 2] = inputs[place + width - 1];
    }
  }

 private:
  // Draws different keys in random order.
  std::vector<std::vector<int64_t>> draw_keys(Philox& random) const {
    std::vector<std::vector<int64_t>> tokens;  // of each part
    for (int64_t part = 0; part < parts_; ++part) {
      tokens.push_back(draw_distinct(random, alphabet_, choices_));
      for (int64_t& token : tokens.back()) token += part * alphabet_;
    }
    std::vector<std::vector<int64_t>> keys;
    if (parts_ == 1) {  // in the order in which they were drawn
      for (const int64_t token : tokens.front()) keys.push_back({token});
      return keys;
    }
    for (int64_t number : draw_distinct(random, pairs_, pairs_)) {
      std::vector<int64_t> key;
      for (const std::vector<int64_t>& choices : tokens) {
        key.push_back(choices[static_cast<size_t>(number % choices_)]);
        number /= choices_;
      }
      keys.push_back(std::move(key));
    }
    return keys;
  }

  int64_t alphabet_, pairs_, queries_;
  int64_t parts_;    // tokens of a key
  int64_t choices_;  // tokens for each part in a sequence
};

// From the usual initial deviation of 0.02 no scheme got beyond guessing among the values in 400 steps; from
// 0.1 they find the answer one after the other. When they do depends on the seed as much as on the scheme:
// compare several seeds.
DiagnosticDefaults recall_defaults() {
  DiagnosticDefaults d{.options = {.kind = DiagnosticKind::kRecall, .alphabet = 16, .pairs = 4, .queries = 12},
                       .steps = 500,
                       .learning_rate = 1e-3};
  d.options.model.layers = 2;
  d.options.model.init_deviation = 0.1;
  d.options.model.attention.d_model = 64;
  return d;
}

}  // namespace

Diagnostic recall_diagnostic() {
  return {.kind = DiagnosticKind::kRecall,
          .sentence =
              "After a list of key-value pairs, name the value of each key that is asked for: heads must tie "
              "each value to the key before it and find it again by content.",
          .fields = {"alphabet", "pairs", "queries", "key-length"},
          .unsaid = {{"key-length", 1}},
          .defaults = recall_defaults(),
          .make = [](const DiagnosticOptions& o) -> std::unique_ptr<SequenceGenerator> {
            return std::make_unique<Recall>(o);
          }};
}

}  // namespace headshare
