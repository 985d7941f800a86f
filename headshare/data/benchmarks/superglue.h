// This header reads SuperGLUE's tasks that are not a text or two with a label: COPA, MultiRC, ReCoRD, WiC, WSC. (BoolQ,
// CB, RTE and the diagnostics are read by examples.h.) The files count places in code points or words; here they are
// bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headshare/text/interface/tokenizer.h"

namespace headshare {

// All readers take a JSONL file in the official layout, plain or .gz, and throw Error naming file and line
// for what is no JSON object, a member that is missing or of another type, an unknown label, a place
// outside its text, labels on some examples only, and a file without examples. A label of -1 means that
// the file has none (the test parts).

struct CopaExample {
  std::string premise;
  std::string choice1;
  std::string choice2;
  bool asks_cause = false;  // else the effect
  int32_t label = -1;       // 0: the first choice, 1: the second
  int64_t index = 0;
};

struct WicExample {
  std::string word;  // the lemma
  std::string sentence1;
  std::string sentence2;
  TextSpan place1;     // of the word's form in sentence1
  TextSpan place2;     // and in sentence2
  int32_t label = -1;  // 1: the same sense
  int64_t index = 0;
};

struct WscExample {
  std::string text;
  TextSpan noun;       // of the text: span1, the noun phrase
  TextSpan pronoun;    // span2
  int32_t label = -1;  // 1: the pronoun stands for the noun phrase
  int64_t index = 0;
};

struct WscData {
  std::vector<WscExample> examples;
  // `moved` counts the spans whose words stand elsewhere than at their index: the nearest place was taken. `not_found`
  // counts those whose words stand nowhere: the words at the index were taken.
  int64_t moved = 0;
  int64_t not_found = 0;
  std::string note;  // a sentence about them; empty when there are none
};

// This is one answer option; those of a question follow each other.
struct MultiRcExample {
  size_t paragraph = 0;  // index into MultiRcData::paragraphs
  std::string question;
  std::string answer;
  int32_t label = -1;  // 1: right
  int64_t paragraph_index = 0;
  int64_t question_index = 0;  // unique in its paragraph
  int64_t answer_index = 0;    // unique in the file
};

struct MultiRcData {
  std::vector<std::string> paragraphs;
  std::vector<MultiRcExample> examples;
  int64_t empty_answers = 0;  // the official training file has three
  std::string note;           // a sentence on them, or empty
};

struct RecordQuery {
  size_t passage = 0;                // index into RecordData::passages
  std::string query;                 // with one "@placeholder"
  std::vector<std::string> answers;  // none in a test file
  int64_t index = 0;                 // unique in the file
};

struct RecordPassage {
  std::string text;                // with the "@highlight" lines
  std::vector<TextSpan> entities;  // the candidates, in the order of the file
};

struct RecordData {
  std::vector<RecordPassage> passages;
  std::vector<RecordQuery> queries;
  int64_t misplaced = 0;  // answers whose place does not hold their text: kept, and said
  std::string note;       // a sentence about the first; empty when there are none
};

std::vector<CopaExample> read_copa(const std::string& path);
std::vector<WicExample> read_wic(const std::string& path);
WscData read_wsc(const std::string& path);
MultiRcData read_multirc(const std::string& path);
RecordData read_record(const std::string& path);

}  // namespace headshare
