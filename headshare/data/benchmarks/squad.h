// This header reads SQuAD v1.1 and v2.0 files (and XQuAD's, which have the same form): paragraphs, questions, answers
// with their places; predictions and null odds by question id.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "headshare/metrics/squad.h"
#include "headshare/text/interface/tokenizer.h"

namespace headshare {

struct SquadAnswer {
  std::string text;
  int64_t start = 0;     // answer_start of the file: code points from the start of the context
  bool located = false;  // the text stands there; else the place is not to be used
  TextSpan bytes = {};   // of the context, when located
};

struct SquadQuestion {
  std::string id;
  std::string question;
  std::vector<SquadAnswer> answers = {};  // none: the question has no answer, or the file does not give it
  bool answerable = false;  // the file says so, is_impossible being false, whether it gives answers or not
  size_t paragraph = 0;     // index into SquadData::paragraphs
};

struct SquadParagraph {
  std::string title;  // of its article
  std::string context;
};

struct SquadData {
  std::string source;                  // the file, for messages
  SquadRules rules = SquadRules::kV1;  // kV2 when the version begins with "v2" or "2" or a question has is_impossible
  std::vector<SquadParagraph> paragraphs = {};
  std::vector<SquadQuestion> questions = {};
  int64_t answers = 0;
  int64_t misplaced = 0;             // answers that are not located
  std::string first_misplaced = {};  // a sentence about the first
};

// Reads a file, plain or .gz. Every question and answer is kept; answers whose place does not hold their text are
// counted. Throws Error naming the file and the place in it ("data[3].paragraphs[2].qas[0]") for what is no JSON, a
// member that is missing or of another type, a question id twice, a question that is_impossible but has answers, and a
// file without questions.
SquadData read_squad(const std::string& path);

// Returns "dev.json: 12 of 10570 answers do not stand at their answer_start (...)"; "" when all do.
std::string misplaced_note(const SquadData& data);

// Tells whether answers to the questions can be scored, and learned from: every question has one, or the rules know
// questions that have none and some have one. A file of questions alone has none.
bool can_be_scored(const SquadData& data);

// Throws Error naming the file, and under the rules of v1.1 the question without an answer, where they cannot.
void check_can_be_scored(const SquadData& data);

std::vector<SquadGold> gold_answers(const SquadData& data);

// Writes the data as a file of its edition, which read_squad() and the official scorers read: for a part, it is the
// gold.
std::string squad_file(const SquadData& data);

// These read the file of the official scorers, {"question id": "answer", ...}, and their file of null odds, {"question
// id": 0.5, ...}. They throw Error naming the file and the id for anything else.
std::unordered_map<std::string, std::string> read_squad_answers(const std::string& path);
NullOdds read_null_odds(const std::string& path);

}  // namespace headshare
