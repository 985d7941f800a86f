// Texts that can be read only once (standard input, pipes) are kept in a run's directory: a run reads its text several
// times, and again when it is resumed or repeated.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "headshare/base/error.h"
#include "headshare/base/files/file.h"
#include "headshare/data/text/data_options.h"

namespace headshare {

// This matches the names of kept inputs, a pattern of OwnNames::names: kept-input-HASH.txt, by the hash of what is in
// it, so that no other file can have the name.
inline constexpr const char* kKeptInputs = "kept-input-*";

class KeptInputs {
 public:
  // Copies each "-" and each pipe among the texts into `directory` and puts the copy's path in its place. Throws Error
  // for "-" given twice, when a copy cannot be written, and for such a text where the run has several `processes`: each
  // reads the text.
  KeptInputs(const fs::path& directory, DataOptions* options, int64_t processes = 1);

  // Deletes the copies it made, unless keep() was called: a mistake in the call leaves nothing.
  ~KeptInputs();
  KeptInputs(const KeptInputs&) = delete;
  KeptInputs& operator=(const KeptInputs&) = delete;

  void keep() { made_.clear(); }

  // Lists the copies' names in the directory.
  std::vector<std::string> names() const;

  // Returns what `read` returns. Errors that name a copy name what the user gave in its place.
  template <class Read>
  auto reading(Read read) const {
    try {
      return read();
    } catch (const Error& error) {
      throw Error(in_given_words(error.what()));
    }
  }

 private:
  std::string in_given_words(std::string message) const;

  std::vector<std::pair<std::string, std::string>> given_;  // the copy's path, what the user knows it as
  std::vector<fs::path> made_;
};

}  // namespace headshare
