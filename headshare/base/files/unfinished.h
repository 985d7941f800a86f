// A file or directory is unfinished until it has its final name. A file has no name at all while it is written, where
// the file system can do that (O_TMPFILE): a killed process then leaves nothing. Elsewhere it is called
// NAME.partial-PID, as directories are. Whoever writes holds a lock on it, so that others can see whether anybody still
// does.
#pragma once

#include <functional>

#include "headshare/base/files/file.h"

namespace headshare {

// A new file or directory may replace this under its final name.
enum class Replace { kNothing, kFile };  // kFile: a regular file

// Opens a new file that will be called `path`. `temporary` becomes its name until then, "" where it has none. Returns
// the descriptor, or -1 with errno.
int open_unfinished(const fs::path& path, fs::path* temporary);

// Writes all bytes and adds them to `written`; returns false with errno when that fails.
bool write_all(int descriptor, const void* data, size_t bytes, uint64_t* written);

// Waits until the content is on the disk; returns false with errno when that fails.
bool flush_unfinished(int descriptor);

// Gives the file its name in one step. Returns 0 or the error number: EEXIST where something has that name that may not
// be replaced.
int name_unfinished(int descriptor, const fs::path& temporary, const fs::path& path, Replace replace);

// Renames a file or a directory to a name that is free. Returns 0 or the error number: EEXIST where it is not free.
int rename_to_free(const fs::path& from, const fs::path& to);

// Exchanges two names in one step; returns false where the file system cannot.
bool exchange_names(const fs::path& one, const fs::path& other);

// Takes the lock of whoever writes; returns true when this process holds it now or the file system has no locks.
bool lock_unfinished(int descriptor);

// Deletes what killed processes left of `path`: path.partial-PID, if it passes `is_ours`, nobody holds its lock, its
// process is gone and nobody wrote to it for an hour (a lock or a number may say nothing about another machine). What
// has this process's own number needs no hour. Returns true when a living process still writes `path`.
bool sweep_unfinished(const fs::path& path, const std::function<bool(const fs::path& partial)>& is_ours);

// Tells whether `path` names, without following a link, what the descriptor has open.
bool names_open(const fs::path& path, int descriptor);

// Tells whether no process of this machine has that number.
bool is_gone(int64_t process);

// Tells whether nobody wrote to it for an hour: what another machine writes changes sooner.
bool has_rested(const fs::directory_entry& entry);

// Returns "" for a regular file, else what the name stands for: "a directory", "a device".
std::string irregular_kind(const fs::path& path);

// Returns where a file of this name is written: a symbolic link stays, and the file that it leads to is meant. Throws
// Error when it leads to none.
fs::path written_path(const fs::path& path);

// Returns the directory in which `path` stands.
fs::path directory_of(const fs::path& path);

// Makes the names in the directory of `path` durable.
void sync_directory_of(const fs::path& path);

}  // namespace headshare
