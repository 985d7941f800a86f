// Tells which files in a directory are ours. A directory that a verb fills carries a mark, the file .headshare, with
// the verb and the names it may write. Only what stands under such a name in a directory with the mark is ever
// replaced, deleted or left out of texts; without the mark it is somebody else's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headshare/base/files/file.h"

namespace headshare {

inline constexpr const char* kMarkFile = ".headshare";
inline constexpr const char* kResolvedFile = "resolved.yaml";  // the options of a call: "# headshare VERB ..." leads it

// A verb writes these files and directories into the directory that its --out names; they are patterns of
// name_matches().
struct OwnNames {
  std::string verb;                            // "train"
  std::string what;                            // "a run", for messages
  std::vector<std::string> names;              // that another program may give, too
  std::vector<std::string> unmistakable = {};  // that no other program gives

  std::vector<std::string> all() const;
};

// Returns what stands in `directory` under one of these names, sorted.
std::vector<fs::path> entries_matching(const fs::path& directory, const std::vector<std::string>& patterns);

// Returns the names in the mark of `directory`: a file with such a name belongs to a run and is no text. Empty without
// a readable mark.
std::vector<std::string> marked_names(const fs::path& directory);

// The verb in the mark of `directory`; "" without a readable mark.
std::string marked_verb(const fs::path& directory);

// The title of a file of options begins with this and the verb that wrote it: "# headshare train --config ...".
inline constexpr std::string_view kTitleLead = "# headshare ";

// The verb in the title of such a file; "" for another text.
std::string verb_of_title(std::string_view text);

// The verb that wrote into `directory`, by its mark or, of a program before marks, by its resolved.yaml; "" where none
// did.
std::string begun_by(const fs::path& directory);

class OutputMark {
 public:
  OutputMark(fs::path directory, OwnNames kind) : directory_(std::move(directory)), kind_(std::move(kind)) {}

  // Tells whether a call of this verb began here: there is its mark, or, of a program before marks, its resolved.yaml.
  bool begun() const;

  // Tells whether this verb may give the name.
  bool may_write(const std::string& name) const { return name_matches(name, kind_.all()); }

  // Tells whether `name` in this directory belongs to this verb, whatever it holds: the mark lists it, or, in a
  // directory from before marks, this verb may give the name.
  bool owns(const std::string& name) const;

  // Throws Error when one of OwnNames::names is taken by something that this verb did not write here.
  void check() const;

  // Marks the directory, before anything else is written into it, or throws as check() does; and deletes unfinished
  // files of our names there: this process holds the directory's lock, so whoever wrote them is gone.
  void set() const;

  // Deletes what this verb wrote here, but for the names in `keep`; the mark stays. Does nothing where this verb did
  // not begin.
  void clear(const std::vector<std::string>& keep = {}) const;

 private:
  fs::path directory_;
  OwnNames kind_;
};

}  // namespace headshare
