#include "headshare/tasks/finetune/squad_answers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_set>

#include "headshare/tasks/evaluation_mode.h"
#include "headshare/tasks/finetune/example_order.h"

namespace headshare {
namespace {

// Returns the places of the `count` largest of scores[first .. last - 1], the largest first.
std::vector<int64_t> largest(const float* scores, int64_t first, int64_t last, int64_t count) {
  std::vector<int64_t> places(static_cast<size_t>(last - first));
  std::iota(places.begin(), places.end(), first);
  const auto kept = std::min<int64_t>(count, last - first);
  std::partial_sort(places.begin(), places.begin() + kept, places.end(),
                    [&](int64_t a, int64_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  places.resize(static_cast<size_t>(kept));
  return places;
}

// Keeps the best of all windows' candidates, no text twice.
void keep_best(int64_t most, std::vector<AnswerCandidate>* candidates) {
  std::stable_sort(candidates->begin(), candidates->end(),
                   [](const AnswerCandidate& a, const AnswerCandidate& b) { return a.score > b.score; });
  std::unordered_set<std::string> seen;
  std::vector<AnswerCandidate> kept;
  for (AnswerCandidate& one : *candidates) {
    if (static_cast<int64_t>(kept.size()) == most) break;
    if (seen.insert(one.text).second) kept.push_back(std::move(one));
  }
  *candidates = std::move(kept);
}

}  // namespace

std::vector<int64_t> lengths_of(const std::vector<SquadWindow>& windows) {
  std::vector<int64_t> lengths;
  for (const SquadWindow& window : windows) lengths.push_back(static_cast<int64_t>(window.row.ids.size()));
  return lengths;
}

Fields fields(AnswerOptions& o) {
  return {
      field("n-best", &o.best, "squad: candidates kept for each question",
            {.min = 1, .max = 1000, .aliases = {"n-best-size"}}),
      field("answer-length", &o.answer_length, "squad: longest answer in tokens",
            {.min = 1, .aliases = {"max-answer-length"}}),
  };
}

void add_candidates(const SquadSet& set, const SquadWindow& window, const WindowScores& scores,
                    const AnswerOptions& options, std::vector<AnswerCandidate>* candidates) {
  const SquadQuestion& question = set.data.questions[window.question];
  const std::string& text = set.data.paragraphs[question.paragraph].context;
  const std::vector<TextSpan>& spans = set.paragraph_spans[question.paragraph];
  const int64_t begin = window.row.second;
  const int64_t end = begin + window.tokens();
  const auto span_at = [&](int64_t place) { return spans[static_cast<size_t>(window.first + place - begin)]; };
  const std::vector<int64_t> ends = largest(scores.end, begin, end, options.best);
  for (const int64_t from : largest(scores.start, begin, end, options.best)) {
    for (const int64_t to : ends) {
      if (to < from || to - from >= options.answer_length) continue;
      const size_t first = span_at(from).begin;
      candidates->push_back({.text = text.substr(first, span_at(to).end - first),
                             .score = static_cast<double>(scores.start[from]) + static_cast<double>(scores.end[to])});
    }
  }
}

SquadPredictions to_predictions(const SquadData& data, const SquadAnswers& answers) {
  SquadPredictions predictions;
  if (data.rules == SquadRules::kV2) {
    predictions.null_odds.emplace();
    predictions.null_threshold = 0;
  }
  for (size_t i = 0; i < data.questions.size(); ++i) {
    const std::string& id = data.questions[i].id;
    const auto& candidates = answers.candidates[i];
    predictions.answers[id] = candidates.empty() ? "" : candidates.front().text;
    if (predictions.null_odds) predictions.null_odds->emplace_back(id, answers.null_odds[i]);
  }
  return predictions;
}

double squad_goal(const SquadScores& scores) { return scores.best_f1 ? scores.best_f1->score : scores.all.f1; }

Tensor place_scores(const SquadAnswerer& answerer, const SquadWindows& windows) {
  return read_windows(answerer, windows, /*states=*/false).scores;
}

RowsRead read_windows(const SquadAnswerer& answerer, const SquadWindows& windows, bool states) {
  const Encoder& model = answerer.model;
  RowPointers rows;
  for (const SquadWindow* window : windows) rows.push_back(&window->row);
  const EncoderInput input = to_input(rows, answerer.padding, model->options(), model->device());
  const Tensor hidden = model->hidden(input);
  RowsRead read{model->token_scores_of(hidden).to(at::kFloat)};
  if (input.visible.defined()) {
    const Tensor nowhere = input.visible.logical_not().unsqueeze(2);
    read.scores = read.scores.masked_fill(nowhere, -std::numeric_limits<float>::infinity());
  }
  if (states) read.states = states_of_tokens(hidden, input);
  return read;
}

SquadAnswers answer_all(const SquadAnswerer& answerer, const SquadSet& set, const Task::Progress& progress,
                        const std::function<void(const SquadWindows&, const Tensor& scores)>& seen) {
  const EvaluationMode evaluating(answerer.model.ptr());
  const at::NoGradGuard no_grad;
  const size_t questions = set.data.questions.size();
  SquadAnswers found{.candidates = std::vector<std::vector<AnswerCandidate>>(questions),
                     .null_odds = std::vector<double>(questions, std::numeric_limits<double>::infinity())};
  const size_t most = answerer.most_rows;
  const std::vector<size_t> order = shortest_first(lengths_of(set.windows));
  for (size_t first = 0; first < order.size(); first += most) {
    SquadWindows windows;
    for (size_t i = first; i < std::min(order.size(), first + most); ++i) windows.push_back(&set.windows[order[i]]);
    const Tensor scores = place_scores(answerer, windows);
    if (seen) seen(windows, scores);
    const Tensor by_end = scores.cpu().transpose(1, 2).contiguous();  // [B, 2, T]
    const int64_t T = by_end.size(2);
    for (size_t i = 0; i < windows.size(); ++i) {
      const float* start = by_end.const_data_ptr<float>() + static_cast<int64_t>(i) * 2 * T;
      const size_t question = windows[i]->question;
      add_candidates(set, *windows[i], {start, start + T}, answerer.options, &found.candidates[question]);
      keep_best(answerer.options.best, &found.candidates[question]);
      const double null_score = static_cast<double>(start[0]) + static_cast<double>(start[T]);
      found.null_odds[question] = std::min(found.null_odds[question], null_score);
    }
    if (progress) {
      progress(static_cast<int64_t>(first + windows.size()), static_cast<int64_t>(set.windows.size()));
    }
  }
  for (size_t i = 0; i < questions; ++i) {
    if (!found.candidates[i].empty()) found.null_odds[i] -= found.candidates[i].front().score;
  }
  return found;
}

}  // namespace headshare
