// A list of inputs is read as a stream of documents, in constant memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/base/files/input_paths.h"

namespace headshare {

enum class InvalidUtf8 {
  kAuto,     // kKeep for byte tokenizers, else kRefuse; TextSource itself takes it as kRefuse
  kRefuse,   // Error naming the file and the byte
  kReplace,  // U+FFFD for each ill-formed part
  kKeep,     // pass the bytes on; JSONL, which must be UTF-8, is still refused
};

struct TextSourceOptions {
  // Each is a text file, a .jsonl file, either of them compressed as .gz, a directory (searched
  // for .txt, .text, .md, .rst and .jsonl, plain or .gz, at any depth; hidden names are skipped, and so is
  // what headshare wrote into marked directories, base/files/output_mark.h), or "-" for standard input, which is
  // read as text.
  std::vector<std::string> inputs = {};
  std::string jsonl_field = "text";
  InvalidUtf8 invalid_utf8 = InvalidUtf8::kRefuse;
  bool allow_binary = false;  // NUL bytes
  bool keep_mark = false;     // a byte order mark at the start of a text file is handed out as text
};

// A piece is a part of a document that can be tokenised by itself.
struct TextPiece {
  std::string_view text;  // valid until the next call
  bool begins_document = false;
};

// Lists the files that `inputs` stand for; those of a directory sorted by path. Throws Error for an input that does not
// exist, a directory without text, an empty list, or "-" given twice.
std::vector<std::string> expand_inputs(const std::vector<std::string>& inputs);

// Lists the files without a check or a notice, for the check that no output replaces a text. Throws Error for a
// directory that cannot be listed.
InputPaths paths_of_texts(const std::vector<std::string>& inputs);

bool is_jsonl(const std::string& input);  // by name: .jsonl or .jsonl.gz

// Every text file and every JSONL record is one document. Pieces have about 1 MiB and end where a
// tokenizer that splits at white space sees the same words as in the whole document: before a single
// space, else behind a single line end, between two characters that are not white space. In a stretch of 8 MiB without
// such a place the cut is made between two characters, and the tokens around that cut may differ from those of the
// whole.
//
// Line ends are kept as they are. A byte order mark at the start of a file is left out, with a notice,
// unless keep_mark is set. JSONL, whose mark is never text: blank lines and records with empty text are skipped, a line
// may have 256 MiB. Throws Error naming the file, and the byte or line, for: a file without text, invalid UTF-8 and NUL
// bytes as the options say, JSON mistakes, a record without the field, damaged gzip data. An empty file found inside a
// directory is skipped with a notice.
class TextSource {
 public:
  explicit TextSource(TextSourceOptions options);
  ~TextSource();

  std::optional<TextPiece> next();

  const std::vector<std::string>& files() const { return files_; }

  // Gives the notices that reading would give about byte order marks, for a caller who has what the files hold already.
  // Needs rereadable().
  void note_marks() const;

  // Tells whether all inputs are regular files: they can be read again and their size is known.
  bool rereadable() const { return bytes_total_.has_value(); }

  // Tells the progress in bytes of the files as stored.
  uint64_t bytes_done() const;
  std::optional<uint64_t> bytes_total() const { return bytes_total_; }

 private:
  class Reader;
  class PlainReader;
  class JsonlReader;

  bool open_next_file();

  TextSourceOptions options_;
  std::vector<std::string> files_;
  std::optional<uint64_t> bytes_total_;
  size_t next_file_ = 0;
  uint64_t bytes_before_ = 0;  // of the files already finished
  std::unique_ptr<Reader> reader_;
};

}  // namespace headshare
