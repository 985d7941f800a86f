// For tests only: this header makes pairs that a small model learns, and the model's options.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "headshare/base/files/file.h"
#include "headshare/tasks/translation/translation_data.h"

namespace headshare {

// Returns a sentence of two to five number words; the translation has them in reverse order.
inline std::string numbers(int line, bool reversed) {
  static const std::vector<std::string> kWords = {"one", "two", "three", "four", "five", "six", "seven"};
  std::vector<std::string> words;
  for (int i = 0; i < 2 + line % 4; ++i)
    words.push_back(kWords[static_cast<size_t>((line * 5 + i * i * 3 + line / 7) % 7)]);
  if (reversed) std::reverse(words.begin(), words.end());
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Writes NAME.src and NAME.tgt, lines first .. first + count - 1, and names them.
inline PairFiles write_pairs(const fs::path& directory, const std::string& name, int first, int count) {
  std::string source, target;
  for (int line = first; line < first + count; ++line) {
    source += numbers(line, false) + "\n";
    target += numbers(line, true) + "\n";
  }
  const PairFiles files{.source = directory / (name + ".src"), .target = directory / (name + ".tgt")};
  write_file(files.source, source);
  write_file(files.target, target);
  return files;
}

// Returns options of 1 + 1 layers of 16 with 2 heads, no dropout, byte-level BPE of 280 tokens.
inline TaskOptions small_translation_options(const std::string& scheme = "mha") {
  TaskOptions options;
  options.task = "translation";
  set_translation_defaults(&options);
  options.model.layers = 1;
  options.model.context = 64;
  options.model.dropout = 0;
  options.model.attention.scheme = scheme;
  options.model.attention.d_model = 16;
  options.model.attention.heads = 2;
  options.own<TextOptions>().tokenizer.kind = TokenizerKind::kBpe;
  options.own<TextOptions>().tokenizer.vocabulary_size = 280;
  return options;
}

// Makes 60 pairs to learn, 10 to validate and 10 to test on, in files of `directory`.
inline TranslationTaskOptions small_translation(const fs::path& directory) {
  TranslationTaskOptions options;
  options.pairs.train = write_pairs(directory, "train", 0, 60);
  options.pairs.validation = write_pairs(directory, "validation", 60, 10);
  options.pairs.test = write_pairs(directory, "test", 70, 10);
  options.pairs.max_pair_length = 64;
  options.pairs.batch_tokens = 128;
  options.beam.beam = 2;
  options.beam.max_length = 30;
  return options;
}

}  // namespace headshare
