#include "headshare/tasks/finetune/coverage.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "headshare/metrics/metric.h"

namespace headshare {
namespace {

using Words = std::unordered_set<int32_t>;

Words words_of(const QuestionSet& set) {
  Words words;
  for (const Question& question : set.questions) {
    for (const EncodedRow& row : question.rows) words.insert(row.text_words.begin(), row.text_words.end());
  }
  return words;
}

// Returns the mean of the scores of these examples; nothing where a metric is 0/0 of them, or has too few.
std::optional<double> score_of_some(const QuestionKind& kind, const QuestionSet& some, const Answers& answers) {
  constexpr size_t kFewest = 2;  // a correlation needs so many examples
  if (some.questions.size() < kFewest) return std::nullopt;
  const double score = task_score(score_answers(kind, some, answers));
  return std::isfinite(score) ? std::optional(score) : std::nullopt;
}

}  // namespace

std::optional<Coverage> coverage_of(const QuestionSet& train, const QuestionKind& kind, const QuestionSet& part,
                                    const Answers& answers) {
  const Words seen = words_of(train);
  if (seen.empty()) return std::nullopt;
  Coverage coverage{.cut_rows = 0};
  Words types;
  QuestionSet some{.source = part.source, .labelled = part.labelled};
  Answers of_some;
  for (size_t i = 0; i < part.questions.size(); ++i) {
    bool unseen = false;
    for (const EncodedRow& row : part.questions[i].rows) {
      for (const int32_t word : row.text_words) {
        const bool is_new = !seen.contains(word);
        coverage.unseen_types += types.insert(word).second && is_new ? 1 : 0;
        coverage.unseen_words += is_new ? 1 : 0;
        unseen = unseen || is_new;
      }
      coverage.words += static_cast<int64_t>(row.text_words.size());
    }
    ++coverage.rows;
    const auto is_cut = [](const EncodedRow& row) { return row.cut; };
    if (std::ranges::any_of(part.questions[i].rows, is_cut)) ++*coverage.cut_rows;
    if (!unseen) continue;
    ++coverage.unseen_rows;
    some.questions.push_back(part.questions[i]);
    of_some.push_back(answers[i]);
  }
  coverage.types = static_cast<int64_t>(types.size());
  coverage.unseen_score = score_of_some(kind, some, of_some);
  return coverage;
}

}  // namespace headshare
