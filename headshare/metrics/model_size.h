// Tells how large a model is. There is one list of these numbers: whoever reads or writes all of them goes through it.
#pragma once

#include <array>
#include <cstdint>

namespace headshare {

// The counts are exact. An encoder keeps no cache: its cache counts are 0. An encoder-decoder has two kinds of cache:
// the decoder's own grows with the target, that of the attention to the source is filled once for each sentence.
struct ModelSize {
  int64_t attention_parameters = 0;            // all attention sub-layers, no biases: what the MHE paper counts
  int64_t attention_parameters_effective = 0;  // without those another parameter can absorb
  int64_t total_parameters = 0;                // everything stored, biases and inert parameters included
  int64_t embedding_parameters = 0;            // of the token embedding, special tokens' included
  int64_t feed_forward_width = 0;              // hidden units of one block's feed-forward part
  int64_t cache_elements_per_token = 0;        // one cache, of a layer or of layers that share it; the mean, where
                                               // caches differ
  int64_t cache_bytes_per_token = 0;           // the whole model, float32
  int64_t source_cache_bytes_per_token = 0;    // of an encoder-decoder, for each token of the source

  bool operator==(const ModelSize&) const = default;
};

// A number of a size stands in all files of results, or in some.
enum class InResults {
  kAlways,      // every one
  kSinceAdded,  // every one that was written since it is counted; 0 stands for it in older files
  kWhereAny,    // those of the models that have some of it
};

struct SizeNumber {
  const char* name;  // in files and tables: "attention_parameters"
  int64_t ModelSize::*member;
  int64_t least;    // that a model can have
  bool in_tables;   // whether tables for spreadsheets have a column for it
  InResults files;  // that hold it
};

// The list has the order of files and tables.
inline constexpr std::array<SizeNumber, 8> kSizeNumbers = {{
    {"attention_parameters", &ModelSize::attention_parameters, 1, true, InResults::kAlways},
    {"attention_parameters_effective", &ModelSize::attention_parameters_effective, 1, true, InResults::kAlways},
    {"total_parameters", &ModelSize::total_parameters, 1, true, InResults::kAlways},
    {"embedding_parameters", &ModelSize::embedding_parameters, 0, true, InResults::kSinceAdded},
    {"feed_forward_width", &ModelSize::feed_forward_width, 0, true, InResults::kAlways},
    {"cache_elements_per_token", &ModelSize::cache_elements_per_token, 0, false, InResults::kAlways},
    {"cache_bytes_per_token", &ModelSize::cache_bytes_per_token, 0, true, InResults::kAlways},
    {"source_cache_bytes_per_token", &ModelSize::source_cache_bytes_per_token, 0, true, InResults::kWhereAny},
}};
// A member that the list lacks would be lost in every file.
static_assert(sizeof(ModelSize) == kSizeNumbers.size() * sizeof(int64_t));

}  // namespace headshare
