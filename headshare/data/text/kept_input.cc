#include "headshare/data/text/kept_input.h"

#include <unistd.h>

#include "headshare/data/byte_stream.h"
#include "headshare/data/hash.h"

namespace headshare {
namespace {

bool can_be_read_once(const std::string& input) {
  std::error_code ignored;
  return input == "-" || fs::is_fifo(input, ignored);
}

// Returns the end by which readers tell formats.
std::string ending_of(const std::string& input) {
  for (const char* ending : {".jsonl.gz", ".jsonl", ".gz"}) {
    if (input.ends_with(ending)) return ending;
  }
  return ".txt";
}

// Copies `input` below the hash of its bytes. The copy of an earlier call with the same bytes is taken as it is.
fs::path kept_copy(const std::string& input, const fs::path& directory, std::vector<fs::path>* made) {
  const fs::path unnamed = directory / join_text("kept-input-", ::getpid());
  AtomicFile file(unnamed);
  ContentHash hash;
  ByteStream stream(input, Decompress::kNo);
  std::vector<char> buffer(size_t{1} << 16);
  while (const size_t count = stream.read(buffer.data(), buffer.size())) {
    hash.update(buffer.data(), count);
    file.write(buffer.data(), count);
  }
  const fs::path copy = directory / join_text("kept-input-", hash.hex(), ending_of(input));
  if (path_exists(copy)) return copy;
  file.commit(copy);
  made->push_back(copy);
  return copy;
}

}  // namespace

KeptInputs::KeptInputs(const fs::path& directory, DataOptions* options, int64_t processes) {
  int64_t dashes = 0;
  for (auto* texts : {&options->text, &options->validation_text, &options->test_text}) {
    for (std::string& input : *texts) {
      if (!can_be_read_once(input)) continue;
      HS_CHECK(processes == 1, input, " can be read only once, and ", processes,
               " processes read it; write the text to a file that all of them can read");
      HS_CHECK(input != "-" || ++dashes == 1, "standard input (-) can be read only once");
      const fs::path copy = kept_copy(input, directory, &made_);
      given_.emplace_back(copy.string(), input == "-" ? "standard input" : input);
      input = copy.string();
    }
  }
}

KeptInputs::~KeptInputs() {
  std::error_code ignored;
  for (const fs::path& copy : made_) fs::remove(copy, ignored);
}

std::vector<std::string> KeptInputs::names() const {
  std::vector<std::string> names;
  for (const auto& [copy, given] : given_) names.push_back(fs::path(copy).filename().string());
  return names;
}

std::string KeptInputs::in_given_words(std::string message) const {
  for (const auto& [copy, given] : given_) {
    for (size_t at = message.find(copy); at != std::string::npos; at = message.find(copy, at + given.size())) {
      message.replace(at, copy.size(), given);
    }
  }
  return message;
}

}  // namespace headshare
