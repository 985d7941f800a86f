#include "headshare/tasks/finetune/squad_windows.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "headshare/base/error.h"
#include "headshare/tasks/finetune/subset.h"

namespace headshare {
namespace {

struct Places {
  int64_t begin, end;  // tokens of the paragraph, both included
};

std::optional<Places> first_answer(const SquadQuestion& question, const std::vector<TextSpan>& spans) {
  for (const SquadAnswer& answer : question.answers) {
    if (!answer.located || answer.bytes.begin == answer.bytes.end) continue;
    const auto begin = std::partition_point(spans.begin(), spans.end(),
                                            [&](const TextSpan& s) { return s.end <= answer.bytes.begin; });
    const auto end =
        std::partition_point(begin, spans.end(), [&](const TextSpan& s) { return s.begin < answer.bytes.end; });
    if (begin < end) return Places{begin - spans.begin(), end - spans.begin() - 1};
  }
  return std::nullopt;
}

// A Cutter cuts one question's paragraph into windows.
class Cutter {
 public:
  Cutter(const RowEncoder& rows, const SquadWindowOptions& options)
      : rows_(rows),
        stride_(options.stride.value_or(std::max<int64_t>(1, rows.length() / 3))),
        special_(2 + rows.tokenizer().pair_separators()),
        question_length_(options.question_length.value_or(std::clamp<int64_t>(rows.length() / 3, 1, 64))) {
    HS_CHECK(question_length_ + special_ < rows.length(), "a row of ", rows.length(),
             " tokens has no room for a question of ", question_length_,
             " and a text; use a larger --max-length or a smaller --question-length");
  }

  void cut(size_t number, const std::string& question, const std::vector<int32_t>& text, std::optional<Places> answer,
           std::vector<SquadWindow>* windows) const {
    std::vector<int32_t> asked = rows_.tokenizer().encode(question);
    if (static_cast<int64_t>(asked.size()) > question_length_) asked.resize(static_cast<size_t>(question_length_));
    const int64_t room = rows_.length() - static_cast<int64_t>(asked.size()) - special_;
    const auto length = static_cast<int64_t>(text.size());
    // A stride beyond the room would skip text.
    const int64_t step = std::min(stride_, room);
    for (int64_t first = 0;; first += step) {
      const int64_t count = std::min(room, length - first);
      SquadWindow window{
          .row = rows_.joined(asked, std::span(text).subspan(static_cast<size_t>(first), static_cast<size_t>(count))),
          .question = number,
          .first = first};
      if (answer && first <= answer->begin && answer->end < first + count) {
        window.start = window.row.second + answer->begin - first;
        window.end = window.row.second + answer->end - first;
      }
      windows->push_back(std::move(window));
      if (first + count >= length) return;
    }
  }

 private:
  const RowEncoder& rows_;
  int64_t stride_;
  int64_t special_;  // tokens of a row that belong to neither text
  int64_t question_length_;
};

}  // namespace

Fields fields(SquadWindowOptions& o) {
  return {
      field("doc-stride", &o.stride,
            "squad: tokens between the starts of a paragraph's windows; auto: a third of a row", {.min = 1}),
      field("question-length", &o.question_length,
            "squad: longer questions are cut to so many tokens; auto: a third of a row, at most 64",
            {.min = 1, .aliases = {"max-query-length"}}),
  };
}

SquadSet make_windows(SquadData data, RowEncoder& rows, const SquadWindowOptions& options, bool teach) {
  SquadSet set{.data = std::move(data), .windows = {}, .paragraph_spans = {}};
  const Cutter cutter(rows, options);
  std::vector<TokensWithSpans> paragraphs;
  for (const SquadParagraph& paragraph : set.data.paragraphs) {
    paragraphs.push_back(rows.tokenizer().encode_with_spans(paragraph.context));
  }
  int64_t left_out = 0;
  for (size_t i = 0; i < set.data.questions.size(); ++i) {
    const SquadQuestion& question = set.data.questions[i];
    const TokensWithSpans& text = paragraphs[question.paragraph];
    HS_CHECK(!text.ids.empty(), set.data.source, ": the paragraph of question ", question.id, " is empty");
    const std::optional<Places> answer = first_answer(question, text.spans);
    if (teach && !answer && (question.answerable || !question.answers.empty())) {
      ++left_out;
      continue;
    }
    cutter.cut(i, question.question, text.ids, answer, &set.windows);
  }
  for (TokensWithSpans& paragraph : paragraphs) set.paragraph_spans.push_back(std::move(paragraph.spans));
  const std::string misplaced = misplaced_note(set.data);
  if (!misplaced.empty()) set.notes.push_back(misplaced);
  if (left_out > 0) {
    set.notes.push_back(join_text(set.data.source, ": ", left_out, " questions have no answer whose place is known, ",
                                  "and are not trained on"));
  }
  HS_CHECK(!set.windows.empty(), misplaced.empty() ? set.data.source : misplaced, ": no question can be trained on",
           misplaced.empty() ? "" : "; answer_start counts the characters (Unicode code points) before an answer");
  return set;
}

void keep_some(std::optional<int64_t> most, SquadData* data) {
  const size_t total = data->questions.size();
  if (!most || static_cast<size_t>(*most) >= total) return;
  data->questions = take_marked(draw_subset(static_cast<size_t>(*most), total), &data->questions);
}

SquadData split_off_articles(double fraction, SquadData* data) {
  std::vector<std::string> titles;
  std::unordered_map<std::string, int64_t> questions;  // how many questions each article has
  for (const SquadQuestion& question : data->questions) {
    const std::string& title = data->paragraphs[question.paragraph].title;
    if (questions[title]++ == 0) titles.push_back(title);
  }
  HS_CHECK(titles.size() >= 2, data->source, " has ", titles.size(),
           " article with questions; two are needed to hold one back");
  const std::vector<size_t> order = shuffled(titles.size(), "articles held back");
  const double wanted = fraction * static_cast<double>(data->questions.size());
  std::unordered_set<std::string> taken;
  for (int64_t count = 0; taken.size() + 1 < titles.size();) {
    if (!taken.empty() && static_cast<double>(count) >= wanted) break;
    const std::string& title = titles[order[taken.size()]];
    count += questions.at(title);
    taken.insert(title);
  }
  SquadData held = *data;
  std::vector<char> is_held;
  for (const SquadQuestion& question : data->questions) {
    is_held.push_back(taken.contains(data->paragraphs[question.paragraph].title) ? 1 : 0);
  }
  held.questions = take_marked(is_held, &data->questions);
  return held;
}

}  // namespace headshare
