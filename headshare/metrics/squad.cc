#include "headshare/metrics/squad.h"

#include <algorithm>
#include <string_view>

#include "headshare/base/error.h"
#include "headshare/metrics/answers.h"

namespace headshare {
namespace {

// This is one question with its prediction and scores; a list of questions has the order of the gold.
struct Question {
  const SquadGold* gold = nullptr;
  const std::string* predicted = nullptr;  // null: missing
  AnswerScore score = {};
  bool has_answer = false;
};

AnswerScore score_question(const SquadGold& gold, const std::string& predicted, SquadRules rules) {
  if (rules == SquadRules::kV1) return score_answer(gold.answers, predicted, NoWords::kNeverSame);
  // Gold answers that consist of articles and punctuation do not count.
  std::vector<std::string> answers;
  for (const std::string& answer : gold.answers) {
    if (!normalize_answer(answer).empty()) answers.push_back(answer);
  }
  if (answers.empty()) answers.emplace_back();
  return score_answer(answers, predicted, NoWords::kSameIfBothAre);
}

std::vector<Question> score_questions(const std::vector<SquadGold>& gold, const SquadPredictions& predictions,
                                      SquadRules rules) {
  std::vector<Question> questions;
  questions.reserve(gold.size());
  for (const SquadGold& one : gold) {
    HS_CHECK(rules == SquadRules::kV2 || !one.answers.empty(), "question ", one.id,
             " has no gold answer, which SQuAD v1.1 does not know; score with the rules of v2.0");
    Question question{.gold = &one, .has_answer = !one.answers.empty()};
    const auto found = predictions.answers.find(one.id);
    if (found != predictions.answers.end()) {
      question.predicted = &found->second;
      question.score = score_question(one, found->second, rules);
    }
    questions.push_back(question);
  }
  return questions;
}

// Sums go from the first question to the last, as the scorers': the last digits depend on it.
SquadPart mean_of(const std::vector<const Question*>& part) {
  SquadPart sums;
  for (const Question* question : part) {
    sums.exact_match += question->score.exact;
    sums.f1 += question->score.f1;
  }
  const auto total = static_cast<double>(part.size());
  return {.exact_match = 100.0 * sums.exact_match / total,
          .f1 = 100.0 * sums.f1 / total,
          .total = static_cast<int64_t>(part.size())};
}

template <class Wanted>
std::optional<SquadPart> mean_where(const std::vector<Question>& questions, const Wanted& wanted) {
  std::vector<const Question*> part;
  for (const Question& question : questions) {
    if (wanted(question)) part.push_back(&question);
  }
  if (part.empty()) return std::nullopt;
  return mean_of(part);
}

using OddsById = std::unordered_map<std::string, double>;

OddsById odds_by_id(const NullOdds& odds, const std::vector<Question>& questions) {
  OddsById by_id(odds.begin(), odds.end());
  for (const Question& question : questions) {
    HS_CHECK(question.predicted == nullptr || by_id.contains(question.gold->id), "question ", question.gold->id,
             " has a prediction but no null odds (", odds.size(), " questions have): both files must be of one run");
  }
  return by_id;
}

void apply_threshold(const OddsById& odds, double threshold, std::vector<Question>* questions) {
  for (Question& question : *questions) {
    if (question.predicted == nullptr || !(odds.at(question.gold->id) > threshold)) continue;
    const double right = question.has_answer ? 0 : 1;
    question.score = {.exact = right, .f1 = right};
  }
}

// Searches from a threshold at which nothing is answered: then the unanswerable questions are right. The threshold
// rises past one question after the other, each of which adds its score or takes back a point; as in the official
// search also where its answer has no words and is right.
SquadThreshold best_threshold(const NullOdds& odds, const std::vector<Question>& questions,
                              double AnswerScore::*which) {
  std::unordered_map<std::string_view, const Question*> by_id;
  double score = 0;
  for (const Question& question : questions) {
    if (question.predicted == nullptr) continue;
    if (!question.has_answer) ++score;
    by_id[question.gold->id] = &question;
  }
  NullOdds ascending = odds;
  std::stable_sort(ascending.begin(), ascending.end(),
                   [](const auto& a, const auto& b) { return a.second < b.second; });
  SquadThreshold best{.score = score, .threshold = 0};
  for (const auto& [id, value] : ascending) {
    const auto found = by_id.find(id);
    if (found == by_id.end()) continue;
    const Question& question = *found->second;
    if (question.has_answer) {
      score += question.score.*which;
    } else if (!question.predicted->empty()) {
      score -= 1;
    }
    if (score > best.score) best = {.score = score, .threshold = value};
  }
  best.score = 100.0 * best.score / static_cast<double>(questions.size());
  return best;
}

void count_strangers(const std::vector<Question>& questions, const SquadPredictions& predictions, SquadScores* scores) {
  int64_t known = 0;
  for (const Question& question : questions) {
    if (question.predicted != nullptr) {
      ++known;
    } else if (scores->missing++ == 0) {
      scores->first_missing = question.gold->id;
    }
  }
  scores->unknown = static_cast<int64_t>(predictions.answers.size()) - known;
}

}  // namespace

SquadScores score_squad(const std::vector<SquadGold>& gold, const SquadPredictions& predictions, SquadRules rules) {
  HS_CHECK(!gold.empty(), "there are no questions to score");
  HS_CHECK(rules == SquadRules::kV2 || !predictions.null_odds,
           "null odds decide whether a question has an answer, which SQuAD v1.1 does not ask; leave them out, or score "
           "with the rules of v2.0");
  std::vector<Question> questions = score_questions(gold, predictions, rules);
  SquadScores scores{.rules = rules == SquadRules::kV1 ? "squad-v1.1" : "squad-v2.0"};
  count_strangers(questions, predictions, &scores);
  if (predictions.null_odds) {
    // The search sees the answers as they are, whatever the threshold in use.
    scores.best_exact = best_threshold(*predictions.null_odds, questions, &AnswerScore::exact);
    scores.best_f1 = best_threshold(*predictions.null_odds, questions, &AnswerScore::f1);
    scores.null_threshold = predictions.null_threshold;
    apply_threshold(odds_by_id(*predictions.null_odds, questions), predictions.null_threshold, &questions);
  }
  scores.all = *mean_where(questions, [](const Question&) { return true; });
  if (rules == SquadRules::kV2) {
    scores.has_ans = mean_where(questions, [](const Question& question) { return question.has_answer; });
    scores.no_ans = mean_where(questions, [](const Question& question) { return !question.has_answer; });
  }
  return scores;
}

std::vector<Score> to_scores(const SquadScores& scores) {
  std::vector<Score> list;
  const std::string missing = scores.missing == 0 ? "" : join_text("|missing:", scores.missing);
  std::string threshold = scores.null_threshold ? join_text("|null_threshold:", *scores.null_threshold) : "";
  const auto add = [&](const std::string& name, double value, int64_t total) {
    list.push_back({.name = name,
                    .value = value,
                    .signature = join_text(name, "|rules:", scores.rules, threshold, "|questions:", total, missing)});
  };
  const auto add_part = [&](const std::string& prefix, const char* exact, const std::optional<SquadPart>& part) {
    if (!part) return;
    add(prefix + exact, part->exact_match, part->total);
    add(prefix + "f1", part->f1, part->total);
    add(prefix + "total", static_cast<double>(part->total), part->total);
  };
  add_part("", "exact_match", scores.all);
  add_part("has_ans_", "exact", scores.has_ans);
  add_part("no_ans_", "exact", scores.no_ans);
  const auto add_best = [&](const std::string& name, const std::optional<SquadThreshold>& best) {
    if (!best) return;
    add(name, best->score, scores.all.total);
    add(name + "_thresh", best->threshold, scores.all.total);
  };
  threshold.clear();
  add_best("best_exact", scores.best_exact);
  add_best("best_f1", scores.best_f1);
  return list;
}

}  // namespace headshare
