// A comparison describes its task by a Subject, and a report the comparison.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headshare/metrics/retention.h"

namespace headshare {

// Readers see this item of the reported part beside what each model wrote for it, or what class it told.
struct WrittenExample {
  int64_t item = 0;  // which one it is, from 0
  std::string input;
  std::string reference;
  std::string image = {};  // of images the input: a PNG file in base64; "" of texts

  bool operator==(const WrittenExample&) const = default;
};

// A subject says what the models were trained for, on what data, and which number compares them.
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
  // The measure is the mean of these tasks' scores, where the models are encoders fine-tuned on each of them.
  std::vector<std::string> tasks = {};
  // Each task has the score of the most frequent answer of its training part, where that is known; the list is empty in
  // files from before it was recorded.
  std::vector<std::optional<double>> task_chances = {};
  double unknown_share = 0;      // of the reported part's tokens, where these are text: they stand for unknown text
  std::string fingerprint = {};  // of all parts as models read them; "" where the data is made or was not hashed
  std::vector<WrittenExample> examples = {};  // where models write text, or see images
  // This names the model that was fine-tuned: "masked LM, 4 layers of 128, 3000 steps". It is "" where there was none,
  // and in files from before it was recorded.
  std::string encoders = {};
  std::string unit = "tokens";  // what training counts for its speed; of tasks it is examples

  // Appends a sentence to the one that says what is asked; "" appends nothing.
  void add_sentence(const std::string& said) { sentence += (sentence.empty() || said.empty() ? "" : " ") + said; }
};

}  // namespace headshare
