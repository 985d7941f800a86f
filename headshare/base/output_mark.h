// Which files in a directory are ours. A directory that a verb fills carries a mark, the file .headshare, with the verb
// and the names it may write. Only what stands under such a name in a directory with the mark is ever replaced, deleted
// or left out of texts; without the mark it is somebody else's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headshare/base/file.h"

namespace headshare {

inline constexpr const char* kMarkFile = ".headshare";
inline constexpr const char* kResolvedFile = "resolved.yaml";  // the options of a call: "# headshare VERB ..." leads it

// What a verb writes into the directory its --out names. In a name, one '*' stands for any characters.
struct OwnNames {
  std::string verb;                // "train"
  std::string what;                // "a run", for messages
  std::vector<std::string> names;  // files and directories
};

// Whether `name` is the pattern's.
bool name_matches(const std::string& name, const std::string& pattern);

// The names in the mark of `directory`: what is there is some run's and not a text. Empty without a readable mark.
std::vector<std::string> marked_names(const fs::path& directory);

class OutputMark {
 public:
  OutputMark(fs::path directory, OwnNames kind) : directory_(std::move(directory)), kind_(std::move(kind)) {}

  // Whether a call of this verb began here: there is its mark, or, of a program before marks, its resolved.yaml.
  bool begun() const;

  // Throws Error when a name that this verb writes is taken by something that it did not write here.
  void check() const;

  // Marks the directory. Before anything else is written into it.
  void set() const;

  // Deletes what this verb wrote here, but for the names in `keep`; the mark stays. Nothing where it did not begin.
  void clear(const std::vector<std::string>& keep = {}) const;

 private:
  std::vector<fs::path> taken() const;  // entries under our names

  fs::path directory_;
  OwnNames kind_;
};

}  // namespace headshare
