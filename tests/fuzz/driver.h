// This driver fuzzes readers: each target reads a folder of files that are mutated one at a time. A reader may throw
// headshare::Error; any other exception, a crash, a sanitizer's report or more than kMostSeconds fails.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "headshare/base/files/file.h"

namespace headshare::fuzz {

// A case is one input: what a reader finds in its folder, by file name.
using Case = std::map<std::string, std::string>;

struct Target {
  std::string name;  // its seeds are tests/fuzz/corpus/NAME/*/
  std::function<void(const fs::path& folder)> read;
  std::vector<Case> seeds = {};  // further ones, of binary files
  // Makes what stands in the file of what is mutated (a header without its length); nothing: the same.
  std::function<std::string(const std::string& file, const std::string& mutated)> packed = {};
};

// Lists the targets of this program.
std::vector<Target> targets();

// Calls `read` and lets it throw Error.
void may_refuse(const std::function<void()>& read);

// Uses a value, so that the compiler keeps what computes it.
void use(uint64_t value);

// Returns a changed copy: bytes, numbers, stretches and words of JSON, parts of `other`.
std::string mutated(std::string text, const std::string& other, std::mt19937_64& random);

}  // namespace headshare::fuzz
