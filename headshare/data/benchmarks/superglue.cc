#include "headshare/data/benchmarks/superglue.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/strings/valid_utf8.h"
#include "headshare/data/benchmarks/examples.h"
#include "headshare/data/benchmarks/json_lines.h"
#include "headshare/data/benchmarks/task_list.h"
#include "headshare/text/unicode/bert_characters.h"
#include "headshare/text/unicode/code_points.h"
#include "headshare/text/unicode/lower_case.h"

namespace headshare {
namespace {

using Json = nlohmann::json;

// This class checks that either all examples of a file have labels or none has.
class AllOrNone {
 public:
  void check(bool labelled, const char* what, const std::string& where) {
    HS_CHECK(!labelled_ || *labelled_ == labelled, where, labelled ? ": has a " : ": has no ", what,
             labelled ? ", but those before have none" : ", but those before have one");
    labelled_ = labelled;
  }

 private:
  std::optional<bool> labelled_;
};

// Labels are written as numbers or truth values.
class Labels {
 public:
  explicit Labels(const char* task) : names_(find_task(Suite::kSuperGlue, task).labels) {}

  // Returns the class of the label, -1 where there is none; either all examples of a file have one or none has.
  int32_t of(const Json& object, const std::string& where) {
    const auto found = object.find("label");
    all_alike_.check(found != object.end(), "label", where);
    return found == object.end() ? -1 : find_label(text_or_json(*found), names_, where);
  }

 private:
  std::vector<std::string> names_;
  AllOrNone all_alike_;
};

// Returns the bytes of code points [begin, end).
TextSpan byte_span(const std::string& text, int64_t begin, int64_t end, const std::string& where) {
  const CodePoints places(text);
  HS_CHECK(begin < end && end <= places.count(), where, ": the place ", begin, " to ", end, " is outside its text of ",
           places.count(), " characters, or empty");
  return {.begin = places.byte(begin), .end = places.byte(end)};
}

// Splits a text into words as str.split() does.
std::vector<TextSpan> split_words(const std::string& text) {
  std::vector<TextSpan> words;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const bool space = is_white_space(next_code_point(text, &at));
    if (space) {
      inside = false;
    } else if (!inside) {
      words.push_back({.begin = start, .end = at});
      inside = true;
    } else {
      words.back().end = at;
    }
  }
  return words;
}

// Returns a word as spans compare it: lower case, without ASCII punctuation around it.
std::string bare(const std::string& text, TextSpan word) {
  while (word.begin < word.end && is_ascii_sign(text[word.begin])) ++word.begin;
  while (word.end > word.begin && is_ascii_sign(text[word.end - 1])) --word.end;
  return lower_case(std::string_view(text).substr(word.begin, word.end - word.begin));
}

std::vector<std::string> bare_words(const std::string& text, const std::vector<TextSpan>& words) {
  std::vector<std::string> all;
  for (const TextSpan& word : words) all.push_back(bare(text, word));
  return all;
}

enum class Found { kAtIndex, kElsewhere, kNowhere };

struct WordSpan {
  TextSpan bytes;
  Found found = Found::kNowhere;
};

// Finds the words of `span` in `text`, at word `index` or as near to it as they are.
WordSpan find_words(const std::string& text, const std::string& span, int64_t index, const std::string& where) {
  const std::vector<TextSpan> words = split_words(text);
  const std::vector<std::string> wanted = bare_words(span, split_words(span));
  const auto count = static_cast<int64_t>(words.size());
  const auto length = static_cast<int64_t>(wanted.size());
  HS_CHECK(length > 0, where, ": the span is empty");
  HS_CHECK(index < count, where, ": the span ", brief_text(span), " is said to begin at word ", index, " of a text of ",
           count, " words");
  const std::vector<std::string> have = bare_words(text, words);
  int64_t best = -1;
  for (int64_t at = 0; at + length <= count; ++at) {
    if (!std::equal(wanted.begin(), wanted.end(), have.begin() + at)) continue;
    if (best < 0 || std::abs(at - index) < std::abs(best - index)) best = at;
  }
  const int64_t first = best < 0 ? index : best;
  const int64_t last = std::min(first + length, count) - 1;
  return {.bytes = {.begin = words[static_cast<size_t>(first)].begin, .end = words[static_cast<size_t>(last)].end},
          .found = best < 0        ? Found::kNowhere
                   : best == index ? Found::kAtIndex
                                   : Found::kElsewhere};
}

}  // namespace

std::vector<CopaExample> read_copa(const std::string& path) {
  std::vector<CopaExample> examples;
  Labels labels("copa");
  for_each_json_line(path, [&](const Json& record, const std::string& where) {
    const std::string& question = json_string(record, "question", where);
    HS_CHECK(question == "cause" || question == "effect", where, ": 'question' must be cause or effect, not ",
             brief_text(question));
    examples.push_back({.premise = json_filled(record, "premise", where),
                        .choice1 = json_filled(record, "choice1", where),
                        .choice2 = json_filled(record, "choice2", where),
                        .asks_cause = question == "cause",
                        .label = labels.of(record, where),
                        .index = json_id(record, "idx", where)});
  });
  return examples;
}

std::vector<WicExample> read_wic(const std::string& path) {
  std::vector<WicExample> examples;
  Labels labels("wic");
  for_each_json_line(path, [&](const Json& record, const std::string& where) {
    const auto place = [&](const char* text, const char* begin, const char* end) {
      return byte_span(json_string(record, text, where), json_id(record, begin, where), json_id(record, end, where),
                       join_text(where, ": '", begin, "'"));
    };
    examples.push_back({.word = json_filled(record, "word", where),
                        .sentence1 = json_filled(record, "sentence1", where),
                        .sentence2 = json_filled(record, "sentence2", where),
                        .place1 = place("sentence1", "start1", "end1"),
                        .place2 = place("sentence2", "start2", "end2"),
                        .label = labels.of(record, where),
                        .index = json_id(record, "idx", where)});
  });
  return examples;
}

WscData read_wsc(const std::string& path) {
  WscData data;
  Labels labels("wsc");
  std::string first;
  const auto place = [&](const Json& record, const std::string& number, const std::string& where) {
    const Json& target = json_member(record, "target", where);
    const std::string& span = json_string(target, "span" + number + "_text", where);
    const int64_t index = json_id(target, "span" + number + "_index", where);
    const WordSpan words = find_words(json_string(record, "text", where), span, index, where);
    if (words.found == Found::kElsewhere) ++data.moved;
    if (words.found == Found::kNowhere) ++data.not_found;
    if (words.found != Found::kAtIndex && first.empty()) {
      first = join_text(where, ": ", brief_text(span), " is not at word ", index);
    }
    return words.bytes;
  };
  for_each_json_line(path, [&](const Json& record, const std::string& where) {
    data.examples.push_back({.text = json_filled(record, "text", where),
                             .noun = place(record, "1", where),
                             .pronoun = place(record, "2", where),
                             .label = labels.of(record, where),
                             .index = json_id(record, "idx", where)});
  });
  if (!first.empty()) {
    data.note = join_text(path, ": ", data.moved, " spans stand at another word than their index says, ",
                          data.not_found, " stand nowhere (the first: ", first, ")");
  }
  return data;
}

MultiRcData read_multirc(const std::string& path) {
  MultiRcData data;
  Labels labels("multirc");
  for_each_json_line(path, [&](const Json& record, const std::string& line) {
    const Json& passage = json_member(record, "passage", line);
    data.paragraphs.push_back(json_filled(passage, "text", line));
    for (const Json& question : json_list(passage, "questions", line)) {
      const int64_t number = json_id(question, "idx", line);
      const std::string where = join_text(line, ", question ", number);
      for (const Json& answer : json_list(question, "answers", where)) {
        data.examples.push_back({.paragraph = data.paragraphs.size() - 1,
                                 .question = json_filled(question, "question", where),
                                 .answer = json_string(answer, "text", where),
                                 .label = labels.of(answer, where),
                                 .paragraph_index = json_id(record, "idx", line),
                                 .question_index = number,
                                 .answer_index = json_id(answer, "idx", where)});
        if (is_blank(data.examples.back().answer) && data.empty_answers++ == 0) {
          data.note = join_text(where, ": answer ", data.examples.back().answer_index);
        }
      }
    }
  });
  HS_CHECK(!data.examples.empty(), path, " has no answers to judge");
  if (data.empty_answers > 0) {
    data.note = join_text(path, ": ", data.empty_answers,
                          " answers are empty and judged as they are (the first: ", data.note, ")");
  }
  return data;
}

RecordData read_record(const std::string& path) {
  RecordData data;
  AllOrNone queries;
  for_each_json_line(path, [&](const Json& record, const std::string& line) {
    const Json& passage = json_member(record, "passage", line);
    RecordPassage read{.text = json_string(passage, "text", line), .entities = {}};
    // The last code point of a place is part of it.
    const auto place = [&](const Json& span, const std::string& where) {
      return byte_span(read.text, json_id(span, "start", where), int64_t{json_id(span, "end", where)} + 1, where);
    };
    for (const Json& entity : json_list(passage, "entities", line)) read.entities.push_back(place(entity, line));
    for (const Json& entry : json_list(record, "qas", line)) {
      RecordQuery query{.passage = data.passages.size(),
                        .query = json_string(entry, "query", line),
                        .answers = {},
                        .index = json_id(entry, "idx", line)};
      const std::string where = join_text(line, ", query ", query.index);
      HS_CHECK(query.query.find("@placeholder") != std::string::npos, where, ": the query has no @placeholder");
      queries.check(entry.contains("answers"), "list of answers", where);
      if (entry.contains("answers")) {
        for (const Json& answer : json_list(entry, "answers", where)) {
          query.answers.push_back(json_string(answer, "text", where));
          const TextSpan bytes = place(answer, where);
          const std::string there = read.text.substr(bytes.begin, bytes.end - bytes.begin);
          if (there == query.answers.back() || data.misplaced++ > 0) continue;
          data.note = join_text(where, ": the answer ", brief_text(query.answers.back()), " is said to stand where ",
                                brief_text(there), " is");
        }
      }
      data.queries.push_back(std::move(query));
    }
    data.passages.push_back(std::move(read));
  });
  HS_CHECK(!data.queries.empty(), path, " has no queries");
  if (data.misplaced > 0) data.note = join_text(data.misplaced, " answers are misplaced; ", data.note);
  return data;
}

}  // namespace headshare
