#include "headshare/metrics/answers.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "headshare/base/error.h"
#include "headshare/base/strings/valid_utf8.h"
#include "headshare/text/unicode/bert_characters.h"
#include "headshare/text/unicode/lower_case.h"

namespace headshare {
namespace {

bool is_article(std::string_view word) { return word == "a" || word == "an" || word == "the"; }

double f1_of(const std::vector<std::string>& gold, const std::vector<std::string>& predicted, NoWords rule) {
  if (gold.empty() || predicted.empty()) {
    return rule == NoWords::kSameIfBothAre && gold.empty() && predicted.empty() ? 1 : 0;
  }
  std::unordered_map<std::string_view, int> left;
  for (const std::string& word : gold) ++left[word];
  const auto same = static_cast<double>(std::count_if(predicted.begin(), predicted.end(), [&](const auto& word) {
    const auto found = left.find(word);
    return found != left.end() && found->second-- > 0;
  }));
  if (same == 0) return 0;
  // This is the official order of operations: the last digit depends on it.
  const double precision = 1.0 * same / static_cast<double>(predicted.size());
  const double recall = 1.0 * same / static_cast<double>(gold.size());
  return (2 * precision * recall) / (precision + recall);
}

// Returns the blank-separated words of the normalised answer. The scorers replace \b(a|an|the)\b by a blank: every run
// of word characters that is an article as a whole.
std::vector<std::string> answer_words(std::string_view answer) {
  std::string text = lower_case(answer);
  text.erase(std::remove_if(text.begin(), text.end(), is_ascii_sign), text.end());  // Python's string.punctuation
  std::vector<std::string> words;
  std::string word;  // up to the next white space or article
  size_t run = 0;    // where in `word` the present run of word characters begins
  const auto end_word = [&] {
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
    run = 0;
  };
  const auto end_run = [&] {
    if (!is_article(std::string_view(word).substr(run))) return;
    word.resize(run);
    end_word();
  };
  for (size_t position = 0; position < text.size();) {
    const size_t start = position;
    const int32_t code_point = next_code_point(text, &position);
    if (code_point < 0) ++position;
    if (code_point >= 0 && is_word_character(code_point)) {
      word.append(text, start, position - start);
      continue;
    }
    end_run();
    if (code_point >= 0 && is_white_space(code_point)) {
      end_word();
    } else {
      word.append(text, start, position - start);
      run = word.size();
    }
  }
  end_run();
  end_word();
  return words;
}

}  // namespace

std::string normalize_answer(std::string_view answer) {
  std::string text;
  for (const std::string& word : answer_words(answer)) {
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

AnswerScore score_answer(const std::vector<std::string>& gold, std::string_view predicted, NoWords rule) {
  const std::vector<std::string> words = answer_words(predicted);
  AnswerScore best;
  for (const std::string& one : gold) {
    const std::vector<std::string> gold_words = answer_words(one);
    // Words have no blanks in them, so the same words are the same normalised text.
    if (gold_words == words) best.exact = 1;
    best.f1 = std::max(best.f1, f1_of(gold_words, words, rule));
  }
  return best;
}

std::vector<Score> record_scores(const std::vector<AnswerPair>& questions) {
  HS_CHECK(!questions.empty(), "there are no questions to score");
  AnswerScore sums;
  int64_t missing = 0;
  for (const AnswerPair& question : questions) {
    if (!question.predicted) {
      ++missing;
      continue;
    }
    const AnswerScore score = score_answer(question.gold, *question.predicted, NoWords::kNeverSame);
    sums.exact += score.exact;
    sums.f1 += score.f1;
  }
  const auto total = static_cast<double>(questions.size());
  const std::string counts =
      join_text("|questions:", questions.size(), missing == 0 ? "" : join_text("|missing:", missing));
  return {{.name = "exact_match", .value = sums.exact / total, .signature = "exact_match|rules:record" + counts},
          {.name = "f1", .value = sums.f1 / total, .signature = "f1|rules:record" + counts}};
}

}  // namespace headshare
