// An attempt is the work of one process on a cell. It has a folder of its own, so that two processes never write into
// one, and its result appears under the cell's name whole or not at all.
//
// The attempt of lease N works in DIR/cells/.NAME.attempt-ID-N, where ID is of the comparison: a process of one that
// was begun anew may still work beside it. An attempt begins with the checkpoints of the attempt before it: hard links,
// as checkpoints are never changed in place, and copies of all other files. The first attempt that renames its folder
// to DIR/cells/NAME is the cell; a rename cannot replace a folder that is not empty.
#pragma once

#include "headshare/compare/cell_run.h"

namespace headshare {

struct AttemptName {
  CellKey key;
  std::string comparison;  // the id of the plan
  int64_t number = 0;      // of the lease
};

// Makes the folder of an attempt and returns it. A process that works on an earlier attempt may still write there.
// Versions before attempts worked under the cell's own name; what they left unfinished is an attempt, too. Throws Error
// where nothing can be written.
fs::path begin_attempt(const fs::path& home, const AttemptName& name);

// Gives the folder of an attempt the name of its cell; returns false where another attempt has it already.
bool publish_attempt(const fs::path& attempt, const fs::path& home, const CellKey& key);

// Deletes all attempts at a cell that is finished, also those of a comparison before.
void sweep_attempts(const fs::path& home, const CellKey& key);

// Returns the folder of a comparison's newest attempt at a cell; "" where there is none.
fs::path newest_attempt(const fs::path& home, const CellKey& key, const std::string& comparison);

}  // namespace headshare
