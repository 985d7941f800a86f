// headshare tokenize shows what a tokenizer makes of each line of a text.
#include <algorithm>
#include <sstream>

#include "headshare/base/files/output_file.h"
#include "headshare/base/files/placeholder.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/json/json_text.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/format.h"
#include "headshare/cli/inputs/reading_progress.h"
#include "headshare/cli/terminal/progress.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/data/line_reader.h"
#include "headshare/data/text/text_source.h"
#include "headshare/data/text/train_on_text.h"
#include "headshare/tasks/finetune/predict.h"
#include "headshare/text/hash/hash_tokenizer.h"
#include "headshare/text/sentencepiece/sentencepiece_tokenizer.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

struct TokenizeOptions {
  std::vector<std::string> files;
  std::string tokenizer;
  TokenizerOptions training;
  DataOptions data;
  std::string write_model;
  bool overwrite = false;
  bool json = false;
};

constexpr const char* kKind = "tokenizer";

Field kind_field(TokenizerOptions& options) {
  const Fields all = fields(options);
  return *std::find_if(all.begin(), all.end(), [](const Field& one) { return one.name == kKind; });
}

// Lists "bytes", "characters", ...
std::vector<std::string> kinds() {
  TokenizerOptions options;
  std::istringstream range(kind_field(options).range);
  std::vector<std::string> names;
  for (std::string name; std::getline(range, name, '|');) names.push_back(name);
  return names;
}

Fields own_fields(TokenizeOptions& o) {
  return {
      field("tokenizer", &o.tokenizer,
            join_text("a kind (", list_text(kinds(), "or"),
                      "), or what was trained before: a tokenizer.json, a SentencePiece .model, the directory of a run "
                      "or model, a folder of GPT-2's or BERT's files")),
      naming_file(
          field("write-model", &o.write_model,
                "write the tokenizer to this file instead of reading text: NAME.model as SentencePiece's programs read "
                "it, any other name as our tokenizer.json")),
      field("overwrite", &o.overwrite, "replace the file of --write-model where it exists already"),
      field("json", &o.json, "print one JSON object a line for each line"),
  };
}

// Returns the options that say how a kind is trained, and on what.
Fields training_fields(TokenizeOptions& o) {
  Fields all = fields(o.data);
  std::erase_if(all, [](const Field& one) {
    return one.name != "text" && one.name != "jsonl-field" && one.name != "invalid-utf8" && one.name != "allow-binary";
  });
  append(&all, fields(o.training));
  std::erase_if(all, [](const Field& one) { return one.name == kKind; });
  return all;
}

std::optional<TokenizerKind> kind_named(const std::string& name) {
  TokenizerOptions options;
  try {
    kind_field(options).parse(name);
  } catch (const Error&) {
    return std::nullopt;  // a path
  }
  return options.kind;
}

// Tells whether a kind learns its tokens; the others are what they are, whatever the text.
bool learns_tokens(TokenizerKind kind) { return has_vocabulary(kind) && kind != TokenizerKind::kBytes; }

// Throws Error where a kind has no text to learn from, or there is text and nothing to learn.
void check_training(const TokenizeOptions& o, std::optional<TokenizerKind> kind) {
  const bool learns = kind && learns_tokens(*kind);
  HS_CHECK(!learns || !o.data.text.empty(), "the tokenizer ", o.tokenizer,
           " learns its tokens from text: name some with --text, or a trained tokenizer's file with --tokenizer");
  HS_CHECK(learns || o.data.text.empty(), "--text trains a tokenizer, and ", o.tokenizer,
           kind ? " has nothing to learn" : " is trained already", "; text to cut into tokens is named without --text");
}

// Throws Error where standard input would be read twice: the tokenizer learns from it, or it is cut into tokens.
void check_standard_input(const TokenizeOptions& o) {
  const auto reads = [](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), "-") != names.end();
  };
  const bool cut = o.write_model.empty() && (o.files.empty() || reads(o.files));
  HS_CHECK(!cut || !reads(o.data.text), "--text - learns from standard input, and there is nothing left of it to cut ",
           "into tokens; name a FILE to cut, or write the tokenizer with --write-model");
}

// Finds the file of a tokenizer; that of a training or a fine-tuning lies in a checkpoint.
fs::path found_tokenizer(const fs::path& path) {
  const fs::path model = find_tuned_model(path);
  return path_exists(model / "checkpoints") ? find_checkpoint(model) : model;
}

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizeOptions& o) {
  const std::optional<TokenizerKind> kind = kind_named(o.tokenizer);
  TokenizerOptions training = o.training;
  training.kind = kind.value_or(TokenizerKind::kBytes);  // what is trained already takes as few options as bytes do
  std::unique_ptr<Tokenizer> made = as_usage([&]() -> std::unique_ptr<Tokenizer> {
    HS_CHECK(kind || path_exists(o.tokenizer), brief_text(o.tokenizer), " is neither a file nor a kind of tokenizer",
             did_you_mean(o.tokenizer, kinds()), "; the kinds are ", list_text(kinds()));
    check_training(o, kind);
    check_tokenizer_options(training);
    if (!kind) return load_tokenizer(found_tokenizer(o.tokenizer));
    return learns_tokens(*kind) ? nullptr : train_tokenizer(training, [](std::string*) { return false; });
  });
  if (made != nullptr) return made;
  ProgressLine line("text");
  return train_on_text(training, o.data, show_reading(line), TextIsFor::kTokenizer);
}

// Checked before the long work; nothing without --write-model.
std::optional<OutputFile> model_file(const TokenizeOptions& o) {
  if (o.write_model.empty()) return std::nullopt;
  InputPaths inputs = paths_of_texts(o.data.text);
  inputs.push_back(o.training.hash_merges);
  if (!kind_named(o.tokenizer)) {
    inputs.push_back(as_usage([&] { return found_tokenizer(o.tokenizer); }).string());
  }
  return OutputFile(o.write_model, o.overwrite ? Overwrite::kYes : Overwrite::kNo, inputs);
}

std::string file_content(const Tokenizer& tokenizer, const fs::path& path) {
  return path.extension() == ".model" ? sentencepiece_file(tokenizer, path) : tokenizer_text(tokenizer);
}

// Writes any text as JSON; bytes that are not UTF-8 (parts of a character) become U+FFFD.
std::string quoted(const std::string& text) { return json_text(nlohmann::json(text)); }

// Prints "[a,b]" of what item(i) writes, in parts: a line may have millions of tokens.
template <class Item>
void print_list(const char* before, size_t count, const Item& item) {
  constexpr size_t kPart = 1 << 16;
  std::string text = join_text(before, "[");
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) text += ',';
    text += item(i);
    if (text.size() < kPart) continue;
    print_json(text);
    text.clear();
  }
  print_json(text + "]");
}

class LinePrinter {
 public:
  LinePrinter(std::unique_ptr<Tokenizer> tokenizer, bool json) : tokenizer_(std::move(tokenizer)), json_(json) {}

  TokensWithSpans encode(std::string_view text) {
    renew_table();
    return tokenizer_->encode_with_spans(text);
  }

  void print_line(const TokensWithSpans& tokens) const {
    json_ ? print_object(tokens) : print_tokens(tokens);
    flush_output();
  }

 private:
  bool hashes() const { return tokenizer_->words() != nullptr; }

  // Starts a new table of words when it is large: input without an end must not fill the memory.
  void renew_table() {
    constexpr int64_t kMostWords = 1 << 18;
    constexpr int64_t kMostBytes = 1 << 26;
    const auto* hashing = dynamic_cast<const HashTokenizer*>(tokenizer_.get());
    if (hashing == nullptr || (hashing->words()->size() < kMostWords && hashing->words()->bytes() < kMostBytes)) return;
    tokenizer_ = hashing->renewed();
  }

  Signature signature(int32_t id) const {
    const int32_t number = id - HashTokenizer::kSpecials;
    return tokenizer_->words()->signatures(number, number + 1).front();
  }

  // Returns the id to show: of hashed words the bucket, for their own ids are those of one run.
  int64_t shown_id(int32_t id) const {
    if (!hashes()) return id;
    const int32_t number = id - HashTokenizer::kSpecials;
    return tokenizer_->words()->buckets(number, number + 1).front() + HashTokenizer::kSpecials;
  }

  void print_tokens(const TokensWithSpans& tokens) const {
    for (size_t i = 0; i < tokens.ids.size(); ++i) {
      print(join_text(shown_id(tokens.ids[i]), "\t", tokens.spans[i].begin, "\t", tokens.spans[i].end, "\t",
                      tokenizer_->spelling(tokens.ids[i]), "\n"));
    }
    print("\n");
  }

  void print_object(const TokensWithSpans& tokens) const {
    const auto each = [&](const char* before, const auto& item) {
      print_list(before, tokens.ids.size(), [&](size_t i) { return item(tokens.ids[i]); });
    };
    each("{\"tokens\":", [&](int32_t id) { return quoted(tokenizer_->spelling(id)); });
    each(",\"ids\":", [&](int32_t id) { return std::to_string(shown_id(id)); });
    print_list(",\"spans\":", tokens.ids.size(),
               [&](size_t i) { return join_text("[", tokens.spans[i].begin, ",", tokens.spans[i].end, "]"); });
    if (hashes()) {
      each(",\"signatures\":", [&](int32_t id) { return quoted(signature(id).hex()); });
      each(",\"chunks\":", [&](int32_t id) { return nlohmann::json(chunk_numbers(signature(id))).dump(); });
    }
    print_json("}\n");
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  bool json_;
};

void tokenize(const std::string& file, LinePrinter* printer) {
  LineReader reader(file);
  while (auto line = reader.next()) {
    if (line->ends_with('\r')) line->remove_suffix(1);
    TokensWithSpans tokens;
    try {
      tokens = printer->encode(*line);
    } catch (const Error& error) {
      throw Error(reader.where() + ": " + error.what());
    }
    printer->print_line(tokens);
  }
}

}  // namespace

int run_tokenize(const Words& words) {
  TokenizeOptions options;
  Arguments arguments("tokenize", "Prints what a tokenizer makes of each line: ids, where tokens stand, tokens.");
  arguments.any_number("FILE", "text, plain or .gz; - or none is standard input", &options.files);
  arguments.group("Tokens", own_fields(options));
  arguments.group("Training the tokenizer", training_fields(options));
  arguments.common({"tokenizer", "text", "vocabulary-size", "write-model", "overwrite", "json"});
  arguments.example("tokenize --tokenizer hash-md --json notes.txt", "hashes of words, with all 128 bits");
  arguments.example("tokenize --tokenizer runs/bert <notes.txt", "the tokens that a model sees");
  arguments.example("tokenize --tokenizer wordpiece --text corpus.txt --vocabulary-size 4096 --write-model pieces.json",
                    "train a tokenizer alone; `train --tokenizer-path pieces.json` takes it");
  arguments.note(
      "A line of text gives a line for each token (id, first byte, byte behind the last, token) and an empty line. Ids "
      "of hash-md and hash-lsh are the word's bucket of 50260, plus 5; --json adds the signature of 128 bits and its "
      "13 chunks, as HashFormers' Pool numbers them.");
  if (!arguments.parse(words)) return kOk;
  as_usage([&] {
    HS_CHECK(!options.tokenizer.empty(), "--tokenizer is missing: one of its kinds, or a path");
    for (const char* name : {"jsonl-field", "invalid-utf8", "allow-binary"}) {
      HS_CHECK(!arguments.given(name) || !options.data.text.empty(), "--", name,
               " is about --text; a FILE is cut into tokens line by line as it is");
    }
    HS_CHECK(options.write_model.empty() || options.files.empty(),
             "--write-model reads no text; leave the files out, or --write-model");
    HS_CHECK(!options.overwrite || !options.write_model.empty(), "--overwrite needs --write-model");
    check_standard_input(options);
    return kOk;
  });
  const std::optional<OutputFile> file = model_file(options);
  std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(options);
  if (file) {
    file->write(file_content(*tokenizer, options.write_model));
    return kOk;
  }
  LinePrinter printer(std::move(tokenizer), options.json);
  if (options.files.empty()) options.files.emplace_back("-");
  for (const std::string& file : options.files) tokenize(file, &printer);
  return kOk;
}

}  // namespace headshare
