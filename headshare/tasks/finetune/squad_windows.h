// SQuAD becomes rows: a question beside a window of its paragraph. Places in rows lead back to the text.
#pragma once

#include <memory>
#include <optional>

#include "headshare/data/benchmarks/squad.h"
#include "headshare/tasks/finetune/rows.h"

namespace headshare {

struct SquadWindowOptions {
  std::optional<int64_t> stride = {};           // tokens between the starts of windows; default a third of a row
  std::optional<int64_t> question_length = {};  // tokens of a question; default a third of a row, at most 64
};

Fields fields(SquadWindowOptions& options);

// A SquadWindow is a row [CLS] question [SEP] tokens of the paragraph [SEP].
struct SquadWindow {
  EncodedRow row;
  size_t question = 0;  // index into SquadData::questions
  int64_t first = 0;    // the paragraph's token at place row.second
  // `start` and `end` tell where the first answer with a known place stands in the row, both included; 0, the place of
  // [CLS], where the question has no answer or it is not wholly in this window.
  int64_t start = 0;
  int64_t end = 0;

  // Counts the paragraph's tokens in the row.
  int64_t tokens() const { return static_cast<int64_t>(row.ids.size()) - row.second - 1; }
};

struct SquadSet {
  SquadData data;
  std::vector<SquadWindow> windows;                    // those of a question follow each other
  std::vector<std::vector<TextSpan>> paragraph_spans;  // of each paragraph's tokens, bytes of its context
  std::vector<std::string> notes = {};                 // sentences for the user
};

// Makes windows over all questions, at least one each. For training (`teach`) questions are left out, and counted in a
// note, that have answers but none with a known place.
SquadSet make_windows(SquadData data, RowEncoder& rows, const SquadWindowOptions& options, bool teach);

// Keeps the first `most` questions in a random order that depends on their number alone, in the order of the file; all
// where there are not more.
void keep_some(std::optional<int64_t> most, SquadData* data);

// Takes about `fraction` of the questions out of the data, whole articles, and returns them. Throws Error for fewer
// than two articles.
SquadData split_off_articles(double fraction, SquadData* data);

}  // namespace headshare
