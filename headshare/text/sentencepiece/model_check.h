// Checks a SentencePiece model as a file before the library reads it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headshare {

// A model file has at most so many bytes; the largest published one, XLM-V's with 901,629 pieces, has about 18 million.
constexpr uint64_t kLargestSentencePieceModel = 32 << 20;

// Returns what the library may read of a model that comes from outside: its bytes without the self-tests. The library
// trusts what it reads: it ends the program for some mistakes, and leaves its arrays for others. Throws Error led by
// `where` for
//  - bytes that are no protocol buffer, or are cut short,
//  - no pieces, more than 2^20 of them, or an empty one, one of more than 1024 bytes or with a zero byte,
//  - scores that are no numbers,
//  - more than 64 user-defined pieces that begin with each other, which is what the library has room for,
//  - character maps whose searches could leave the map (Charsmap::check_searches).
std::string checked_sentencepiece_model(std::string_view bytes, const std::string& where);

}  // namespace headshare
