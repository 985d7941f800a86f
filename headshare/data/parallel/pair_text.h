// This class reads sentence pairs of files, one after another.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "headshare/data/line_reader.h"
#include "headshare/data/parallel/pair_options.h"

namespace headshare {

struct Pair {
  std::string source;
  std::string target;
  bool operator==(const Pair&) const = default;
};

// Reads pairs in constant memory. Sides may be empty. "-" is standard input, names in .gz are decompressed, a byte
// order mark is dropped, and so is the carriage return of a line that ends in CR LF.
//
// A JSONL record has the two fields, or an object "translation" that has them (Hugging Face's layout); blank lines are
// skipped there. Throws Error naming file and line, or both files, for:
//  - files of unequal length (both counts are counted to the end), and files without pairs,
//  - invalid UTF-8 and NUL bytes as TextSource does (--invalid-utf8),
//  - TSV lines with more or fewer columns, JSON mistakes, fields that are missing or no texts,
//  - options that do not fit: one file with kLines, two with another format, JSONL without pair_fields.
class PairText {
 public:
  // Opens the files; `options` says how, not which.
  PairText(const PairFiles& files, const PairOptions& options);
  ~PairText();

  // Returns the next pair; nothing at the end.
  std::optional<Pair> next();

  // Names the pair last read, for messages: "train.tsv:17", "train.de:17 and train.en:17".
  std::string where() const;

  // Returns "train.tsv", "train.de and train.en".
  std::string name() const;

  uint64_t pairs() const { return pairs_; }  // read so far

 private:
  std::optional<Pair> next_lines();
  std::optional<Pair> next_row();
  std::optional<Pair> next_record();
  std::string text_of(std::string_view line, const LineReader& reader);
  void read_heading();
  void refuse_unequal(size_t longer);

  TextSourceOptions rules_;
  std::vector<std::string> fields_;
  PairFormat format_;
  std::array<std::unique_ptr<LineReader>, 2> lines_;  // source, target; one where a file has both sides
  std::array<size_t, 2> columns_ = {0, 1};            // of TSV
  size_t column_count_ = 2;
  uint64_t pairs_ = 0;
};

}  // namespace headshare
