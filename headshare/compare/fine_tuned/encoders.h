// An EncoderSet holds the pre-trained encoders that a comparison of masked language models left, one for each variant
// and seed.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "headshare/base/files/file.h"
#include "headshare/report/results/results.h"

namespace headshare {

struct EncoderSet {
  using Key = std::pair<std::string, int64_t>;  // a variant's name, a seed of the pre-training

  fs::path home;                             // the comparison's directory
  std::string data;                          // what they learned from
  std::string objective;                     // what they learned: "masked LM"
  std::string size;                          // what all of them are: "4 layers of 192, 1500 steps"
  std::string match;                         // what was made equal: "steps", "time", "parameters"
  std::vector<int64_t> seeds = {};           // seeds of the pre-training, ascending
  std::vector<Variant> variants = {};        // trained or not, as planned
  std::map<Key, fs::path> checkpoints = {};  // models of finished encoders
  std::map<Key, std::string> missing = {};   // why a planned encoder is not there: "its training failed: ..."

  // Tells whether the variant has an encoder of some seed.
  bool has(const std::string& variant) const;

  // Tells whether wider feed-forward parts made the parameters equal; then their widths differ.
  bool parameters_matched() const { return match == "parameters"; }

  // Describes what sets must share to be compared: "masked LM, 4 layers of 192, 1500 steps".
  std::string kind() const { return objective + ", " + size + (match == "steps" ? "" : ", made equal in " + match); }
  // Describes the encoders for readers of results that were made with them.
  std::string described() const { return data + " (" + kind() + ")"; }
};

// Reads home/results.json, also of a comparison that is not finished; of a sweep each variant's best setting counts.
// el_lossless is passed over: its weights are mha's. Throws Error for what holds no comparison of encoders.
EncoderSet find_encoders(const fs::path& home);

// Returns the seed of the encoder that fine-tuning with `seed` begins with: the same, or the only one where all seeds
// share one encoder. Throws Error where there are several and none has this seed.
int64_t encoder_seed(const EncoderSet& set, int64_t seed);

// Returns the checkpoint that fine-tuning a variant with `seed` begins with. Throws Error that says where it was looked
// for and why there is none.
fs::path encoder_of(const EncoderSet& set, const std::string& variant, int64_t seed);

// Returns the checkpoint of the first seed for which the variant has an encoder. Throws as encoder_of() where there is
// none.
fs::path first_encoder(const EncoderSet& set, const std::string& variant);

// Throws Error, naming two variants and the difference, unless the encoders of all seeds have the same tokenizer and
// the same sizes, apart from attention and the variants' own options: else more than these would be compared.
void check_comparable(const EncoderSet& set, const std::vector<Variant>& variants);

}  // namespace headshare
