// What models are trained for, on what data, and by what number they are judged: what a comparison says of its task,
// and what a report says of a comparison.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headshare/metrics/retention.h"

namespace headshare {

// An item of the reported part that readers see beside what each model wrote for it.
struct WrittenExample {
  int64_t item = 0;  // which one it is, from 0
  std::string input;
  std::string reference;

  bool operator==(const WrittenExample&) const = default;
};

// What the models were trained for and by what number they are judged.
struct Subject {
  std::string name;      // "language-model", "offsets"
  std::string sentence;  // what it asks of the heads
  std::string data;      // "book.txt: 1,115,394 bytes, 412,332 tokens of a bpe tokenizer with 1,024"
  std::string measure;   // "perplexity" or "accuracy"
  Direction direction = Direction::kLowerIsBetter;
  std::string block;                  // what Cell::blocks are: "text windows", "sequences"
  bool has_test_part = true;          // false: figures are of the validation part, which also chose the checkpoint
  std::optional<double> chance = {};  // what guessing reaches, where that is known
  double full_scale = 1;              // of the measure: what a perfect model reaches, 1 or 100
  // The tasks whose scores the measure is the mean of, where the models are encoders fine-tuned on each of them.
  std::vector<std::string> tasks = {};
  // Of each task, what the most frequent answer of its training part scores, where that is known; empty in files of
  // before it was recorded.
  std::vector<std::optional<double>> task_chances = {};
  double unknown_share = 0;      // of the reported part's tokens, where these are text: they stand for unknown text
  std::string fingerprint = {};  // of all parts as models read them; "" where the data is made or was not hashed
  std::vector<WrittenExample> examples = {};  // where models write text
  // What was fine-tuned: "masked LM, 4 layers of 128, 3000 steps"; "" where nothing was, and of before this was
  // recorded.
  std::string encoders = {};
};

}  // namespace headshare
