#include "headshare/data/text/text_source.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/files/file.h"
#include "headshare/base/files/output_mark.h"
#include "headshare/base/notice.h"
#include "headshare/base/options/nearest.h"
#include "headshare/data/benchmarks/json_lines.h"
#include "headshare/data/byte_order_mark.h"
#include "headshare/data/byte_stream.h"
#include "headshare/data/repair_utf8.h"
#include "headshare/data/text/allowed_text.h"
#include "headshare/data/text/text_cut.h"

namespace headshare {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr size_t kMostPieceBytes = size_t{8} << 20;
constexpr size_t kByteOrderMarkBytes = 3;
constexpr std::array<std::string_view, 5> kTextEndings = {".txt", ".text", ".md", ".rst", ".jsonl"};

std::string without_gz(const std::string& name) {
  return name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name;
}

bool has_text_ending(const fs::path& path) {
  const std::string name = without_gz(path.filename().string());
  return std::any_of(kTextEndings.begin(), kTextEndings.end(), [&](auto ending) { return name.ends_with(ending); });
}

// This class remembers the directories met so far and the names of what headshare wrote into them.
class OwnOutputs {
 public:
  bool contains(const fs::path& path) {
    const auto [found, fresh] = names_.try_emplace(path.parent_path().string());
    if (fresh) found->second = marked_names(path.parent_path());
    return name_matches(path.filename().string(), found->second);
  }

 private:
  std::unordered_map<std::string, std::vector<std::string>> names_;
};

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

// Lists the text files of a directory, sorted by path, empty ones too. Links to directories are not followed.
std::vector<std::string> files_below(const std::string& directory) {
  std::vector<std::string> files;
  OwnOutputs outputs;
  try {
    for (auto entry = fs::recursive_directory_iterator(directory); entry != fs::recursive_directory_iterator();
         ++entry) {
      if (is_hidden(entry->path()) || outputs.contains(entry->path())) {
        entry.disable_recursion_pending();
      } else if (entry->is_regular_file() && has_text_ending(entry->path())) {
        files.push_back(entry->path().string());
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw Error(join_text("cannot list the directory ", directory, ": ", error.what()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool has_text(const std::string& file) {
  std::error_code code;
  if (fs::file_size(file, code) > 0 || code) return true;  // reading it will say what is wrong
  notice(join_text(file, " is empty and was skipped"));
  return false;
}

// Returns the files of the directory that are read.
std::vector<std::string> files_of(const std::string& directory) {
  std::vector<std::string> files = files_below(directory);
  std::erase_if(files, [](const std::string& file) { return !has_text(file); });
  HS_CHECK(!files.empty(), "the directory ", directory,
           " holds no text: no file at any depth ends in .txt, .text, .md, .rst or .jsonl (or these with .gz)");
  return files;
}

// Returns where to cut a text that goes on behind its end; 0 when more of it should be read first.
size_t cut_position(std::string_view text) {
  if (text.size() < kPieceBytes) return 0;
  const size_t safe = last_safe_cut(text);
  return safe == 0 && text.size() >= kMostPieceBytes ? character_boundary(text, text.size() - 4) : safe;
}

}  // namespace

// A reader gives the pieces of one file.
class TextSource::Reader {
 public:
  explicit Reader(const TextSourceOptions& options) : options_(options) {}
  virtual ~Reader() = default;
  virtual std::optional<TextPiece> next() = 0;
  virtual uint64_t position() const = 0;

 protected:
  const TextSourceOptions& options_;
  std::string storage_;
};

class TextSource::PlainReader : public Reader {
 public:
  PlainReader(const std::string& file, const TextSourceOptions& options) : Reader(options), stream_(file) {}

  uint64_t position() const override { return stream_.position(); }

  std::optional<TextPiece> next() override {
    buffer_.erase(0, std::exchange(used_, 0));
    if (ended_ && buffer_.empty()) return std::nullopt;
    size_t cut = 0;
    while (!ended_ && cut == 0) {
      ended_ = !fill();
      const bool drops = offset_ == 0 && !options_.keep_mark;
      if (drops && drop_byte_order_mark(&buffer_, stream_.name())) offset_ = kByteOrderMarkBytes;
      if (!ended_) cut = cut_position(buffer_);
    }
    used_ = ended_ ? buffer_.size() : cut;
    HS_CHECK(used_ > 0, stream_.name(), " is empty");
    const std::string_view text = std::string_view(buffer_).substr(0, used_);
    const uint64_t offset = std::exchange(offset_, offset_ + used_);
    return TextPiece{.text = allowed_text(text, options_, stream_.name(), offset, &storage_),
                     .begins_document = std::exchange(begins_, false)};
  }

 private:
  // Appends a piece of the file to `buffer_`; false when the file ended before that.
  bool fill() {
    const size_t before = buffer_.size();
    buffer_.resize(before + kPieceBytes);
    const size_t count = stream_.read(buffer_.data() + before, kPieceBytes);
    buffer_.resize(before + count);
    return count == kPieceBytes;
  }

  ByteStream stream_;
  std::string buffer_;
  size_t used_ = 0;      // bytes of the buffer handed out by the last call
  uint64_t offset_ = 0;  // in the (decompressed) file, of the buffer
  bool ended_ = false;
  bool begins_ = true;
};

class TextSource::JsonlReader : public Reader {
 public:
  JsonlReader(const std::string& file, const TextSourceOptions& options) : Reader(options), lines_(file) {}

  uint64_t position() const override { return lines_.position(); }

  std::optional<TextPiece> next() override {
    if (done_ == document_.size() && !next_document()) return std::nullopt;
    const std::string_view rest = std::string_view(document_).substr(done_);
    const size_t cut = rest.size() > kMostPieceBytes ? cut_position(rest.substr(0, kMostPieceBytes)) : rest.size();
    const bool begins = done_ == 0;
    done_ += cut;
    return TextPiece{.text = rest.substr(0, cut), .begins_document = begins};
  }

 private:
  // Reads the next record with text into `document_`; returns false at the end of the file.
  bool next_document() {
    done_ = 0;
    document_.clear();
    while (document_.empty()) {
      const std::optional<std::string_view> line = lines_.next();
      if (!line) {
        HS_CHECK(found_, lines_.name(), " is empty: no record has a text");
        return false;
      }
      if (line->find_first_not_of(" \t\r") == std::string_view::npos) continue;
      document_ = text_of(*line, lines_.where());
    }
    found_ = true;
    return true;
  }

  std::string text_of(std::string_view line, const std::string& where) {
    TextSourceOptions rules = options_;
    if (rules.invalid_utf8 == InvalidUtf8::kKeep) rules.invalid_utf8 = InvalidUtf8::kRefuse;
    rules.allow_binary = true;  // parse_json_line refuses NUL bytes as what they are here: not JSON
    const nlohmann::json record = parse_json_line(allowed_text(line, rules, where, 0, &storage_), where);
    const auto found = record.find(options_.jsonl_field);
    if (found == record.end()) {
      std::vector<std::string> names;
      for (const auto& item : record.items()) names.push_back(item.key());
      throw Error(join_text(where, ": the record has no '", options_.jsonl_field, "'",
                            did_you_mean(options_.jsonl_field, names), "; name the text with --jsonl-field"));
    }
    HS_CHECK(found->is_string(), where, ": '", options_.jsonl_field, "' must be text, not ", found->type_name());
    const auto& text = found->get_ref<const std::string&>();
    return std::string(allowed_text(text, options_, where + ": the text", 0, &storage_));
  }

  LineReader lines_;
  bool found_ = false;
  std::string document_;
  size_t done_ = 0;  // bytes of the document handed out
};

std::vector<std::string> expand_inputs(const std::vector<std::string>& inputs) {
  HS_CHECK(!inputs.empty(), "no text was given; name files or directories with --text, or - for standard input");
  HS_CHECK(std::count(inputs.begin(), inputs.end(), "-") <= 1, "standard input (-) can be read only once");
  std::vector<std::string> files;
  for (const std::string& input : inputs) {
    std::error_code code;
    if (input != "-" && fs::is_directory(input, code)) {
      for (std::string& file : files_of(input)) files.push_back(std::move(file));
    } else {
      HS_CHECK(input == "-" || path_exists(input), "cannot open ", input, ": No such file or directory");
      files.push_back(input);
    }
  }
  return files;
}

InputPaths paths_of_texts(const std::vector<std::string>& inputs) {
  InputPaths paths;
  for (const std::string& input : inputs) {
    std::error_code code;
    if (fs::is_directory(input, code)) {
      for (std::string& file : files_below(input)) paths.push_back(std::move(file));
    } else {
      paths.push_back(input);
    }
  }
  return paths;
}

bool is_jsonl(const std::string& input) { return without_gz(input).ends_with(".jsonl"); }

TextSource::TextSource(TextSourceOptions options)
    : options_(std::move(options)), files_(expand_inputs(options_.inputs)), bytes_total_(0) {
  for (const std::string& file : files_) {
    if (file == "-" || !fs::is_regular_file(file)) {
      bytes_total_.reset();
    } else {
      check_readable(file);
      if (bytes_total_) *bytes_total_ += fs::file_size(file);
    }
  }
}

TextSource::~TextSource() = default;

bool TextSource::open_next_file() {
  if (next_file_ == files_.size()) return false;
  const std::string& file = files_[next_file_++];
  if (is_jsonl(file)) {
    reader_ = std::make_unique<JsonlReader>(file, options_);
  } else {
    reader_ = std::make_unique<PlainReader>(file, options_);
  }
  return true;
}

std::optional<TextPiece> TextSource::next() {
  while (reader_ != nullptr || open_next_file()) {
    if (std::optional<TextPiece> piece = reader_->next()) return piece;
    bytes_before_ += reader_->position();
    reader_.reset();
  }
  return std::nullopt;
}

void TextSource::note_marks() const {
  for (const std::string& file : files_) {
    if (options_.keep_mark && !is_jsonl(file)) continue;
    ByteStream stream(file);
    std::string start(kByteOrderMarkBytes, '\0');
    start.resize(stream.read(start.data(), start.size()));
    drop_byte_order_mark(&start, stream.name());
  }
}

uint64_t TextSource::bytes_done() const { return bytes_before_ + (reader_ != nullptr ? reader_->position() : 0); }

}  // namespace headshare
