// The pre-trained encoders that a comparison of masked language models left, one for each variant and seed.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "headshare/base/file.h"
#include "headshare/report/results/results.h"

namespace headshare {

struct EncoderSet {
  using Key = std::pair<std::string, int64_t>;  // a variant's name, a seed of the pre-training

  fs::path home;                             // the comparison's directory
  std::string data;                          // what they learned from
  std::string objective;                     // what they learned: "masked LM"
  std::string size;                          // what all of them are: "4 layers of 192, 1500 steps"
  std::string match;                         // what was made equal: "steps", "time", "parameters"
  std::vector<int64_t> seeds = {};           // of the pre-training, ascending
  std::vector<Variant> variants = {};        // trained or to be, as planned
  std::map<Key, fs::path> checkpoints = {};  // finished
  std::map<Key, std::string> missing = {};   // why a planned one is not there: "its training failed: ..."

  // Whether the variant has an encoder of some seed.
  bool has(const std::string& variant) const;

  // By wider feed-forward parts: these differ then.
  bool parameters_matched() const { return match == "parameters"; }

  // Tells sets apart that cannot be compared: "masked LM, 4 layers of 192, 1500 steps".
  std::string kind() const { return objective + ", " + size + (match == "steps" ? "" : ", made equal in " + match); }
  // For readers of what was made of them.
  std::string described() const { return data + " (" + kind() + ")"; }
};

// Reads home/results.json, also of a comparison that is not finished; of a sweep each variant's best setting counts.
// el_lossless is passed over: its weights are mha's. Throws Error for what holds no comparison of encoders.
EncoderSet find_encoders(const fs::path& home);

// The seed of the encoder that fine-tuning with `seed` begins with: the same, or the only one where all seeds share one
// encoder. Throws Error where there are several and none has this seed.
int64_t encoder_seed(const EncoderSet& set, int64_t seed);

// The checkpoint that fine-tuning a variant with `seed` begins with. Throws Error saying where it was looked for and
// why there is none.
fs::path encoder_of(const EncoderSet& set, const std::string& variant, int64_t seed);

// That of the variant's first seed that has one.
fs::path first_encoder(const EncoderSet& set, const std::string& variant);

// Throws Error, naming two variants and what differs, unless the encoders of all seeds have the same tokenizer and,
// attention and what the variants are made of aside, the same sizes: else more would be compared.
void check_comparable(const EncoderSet& set, const std::vector<Variant>& variants);

}  // namespace headshare
