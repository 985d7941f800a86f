// This header reads files of translations: one segment (mostly a sentence) a line.
#pragma once

#include <string>
#include <vector>

namespace headshare {

// Returns the lines of a file, of a gzip file (named .gz) or, for "-", of standard input, without white space at their
// ends; a line may be empty. Throws Error as LineReader does, for a file without any line, and, with the line's number,
// for text that is not UTF-8.
std::vector<std::string> read_segments(const std::string& input);

// Returns the lines of several files in the same way. Throws Error, naming two files and their numbers of lines, unless
// all have as many.
std::vector<std::vector<std::string>> read_parallel_segments(const std::vector<std::string>& inputs);

}  // namespace headshare
