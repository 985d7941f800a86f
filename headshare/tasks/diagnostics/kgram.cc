// The task k-gram has a random walk in which a token mostly follows from the k tokens before it, by a rule that every
// sequence has of its own; it asks which token has followed these k tokens most often so far.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "headshare/base/error.h"
#include "headshare/tasks/diagnostics/kinds.h"

namespace headshare {
namespace {

constexpr double kSurprise = 0.2;     // share of tokens that are drawn at random, so that the walk does not cycle
constexpr int kMostAttempts = 10000;  // walks to draw until one holds enough questions
constexpr double kMostContexts = 1 << 20;

double contexts_of(const DiagnosticOptions& o) {
  return std::pow(static_cast<double>(o.alphabet), static_cast<double>(o.order));
}

// The questions stand at the last `queries` places at which one successor of the k tokens leads all others.
class KGram : public SequenceGenerator {
 public:
  explicit KGram(const DiagnosticOptions& o)
      : alphabet_(o.alphabet), length_(o.sequence_length), order_(o.order), queries_(o.queries) {
    HS_CHECK(contexts_of(o) <= kMostContexts, "the task k-gram has --alphabet to the power of --order contexts, here ",
             contexts_of(o), "; make one of them smaller, so that there are at most ", kMostContexts);
    HS_CHECK(queries_ + static_cast<int64_t>(contexts_of(o)) + order_ <= length_, "a sequence of ", length_,
             " tokens is too short to meet ", contexts_of(o), " contexts again and ask ", queries_,
             " times; use a larger --sequence-length, fewer --queries, or a smaller --alphabet or --order");
  }

  int64_t vocabulary() const override { return alphabet_; }
  int64_t length() const override { return length_; }
  int64_t targets_per_sequence() const override { return queries_; }
  double chance() const override { return 1.0 / static_cast<double>(alphabet_); }

  void fill(Philox& random, std::span<int64_t> inputs, std::span<int64_t> targets) const override {
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      walk(random, inputs);
      if (ask(inputs, targets)) return;
    }
    throw Error(join_text("no sequence of ", length_, " tokens held ", queries_,
                          " questions of the task k-gram; use a larger --sequence-length or fewer --queries"));
  }

 private:
  // Numbers the k tokens that end at `place`, in base `alphabet`.
  size_t context(std::span<const int64_t> inputs, size_t place) const {
    int64_t number = 0;
    for (int64_t back = order_ - 1; back >= 0; --back) {
      number = number * alphabet_ + inputs[place - static_cast<size_t>(back)];
    }
    return static_cast<size_t>(number);
  }

  int64_t draw(Philox& random) const { return static_cast<int64_t>(random.below(static_cast<uint64_t>(alphabet_))); }

  void walk(Philox& random, std::span<int64_t> inputs) const {
    std::map<size_t, int64_t> rule;  // the usual successor of each context, drawn when it is first met
    const auto order = static_cast<size_t>(order_);
    for (size_t place = 0; place < inputs.size(); ++place) {
      inputs[place] = draw(random);
      if (place < order || random.uniform() < kSurprise) continue;
      const size_t before = context(inputs, place - 1);
      if (!rule.contains(before)) rule[before] = draw(random);
      inputs[place] = rule[before];
    }
  }

  // Returns the token that followed most often; nothing where two lead, or none was seen.
  static std::optional<int64_t> leader(const std::vector<int64_t>& counts) {
    const auto most = std::max_element(counts.begin(), counts.end());
    if (*most == 0 || std::count(counts.begin(), counts.end(), *most) > 1) return std::nullopt;
    return most - counts.begin();
  }

  // Sets the targets; returns false where the walk holds too few questions.
  bool ask(std::span<const int64_t> inputs, std::span<int64_t> targets) const {
    std::map<size_t, std::vector<int64_t>> followed;  // context -> how often each token followed it
    std::vector<std::pair<size_t, int64_t>> questions;
    for (auto place = static_cast<size_t>(order_ - 1); place < inputs.size(); ++place) {
      std::vector<int64_t>& counts = followed[context(inputs, place)];
      counts.resize(static_cast<size_t>(alphabet_));
      if (const std::optional<int64_t> answer = leader(counts)) questions.emplace_back(place, *answer);
      if (place + 1 < inputs.size()) ++counts[static_cast<size_t>(inputs[place + 1])];
    }
    if (static_cast<int64_t>(questions.size()) < queries_) return false;
    for (auto one = questions.end() - queries_; one != questions.end(); ++one) targets[one->first] = one->second;
    return true;
  }

  int64_t alphabet_, length_, order_, queries_;
};

DiagnosticDefaults kgram_defaults() {
  DiagnosticDefaults d{
      .options = {.kind = DiagnosticKind::kKGram, .sequence_length = 64, .alphabet = 3, .queries = 32, .order = 2},
      .steps = 600,
      .learning_rate = 1e-3};
  d.options.model.layers = 2;
  d.options.model.attention.d_model = 64;
  return d;
}

}  // namespace

Diagnostic kgram_diagnostic() {
  return {.kind = DiagnosticKind::kKGram,
          .sentence =
              "Name the token that has followed the last k tokens most often in this sequence: heads must find where "
              "the same k tokens stood before and count what came next.",
          .fields = {"sequence-length", "alphabet", "queries", "order"},
          .defaults = kgram_defaults(),
          .make = [](const DiagnosticOptions& o) -> std::unique_ptr<SequenceGenerator> {
            return std::make_unique<KGram>(o);
          }};
}

}  // namespace headshare
