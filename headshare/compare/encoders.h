// The pre-trained encoders that a comparison of masked language models left, one for each variant.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "headshare/base/file.h"
#include "headshare/report/results/results.h"

namespace headshare {

struct EncoderSet {
  fs::path home;                                     // the comparison's directory
  std::string data;                                  // what they learned from
  std::string size;                                  // what all of them are: "4 layers of 192, 1500 steps"
  std::string match;                                 // what was made equal: "steps", "time", "parameters"
  int64_t seed = 0;                                  // of the encoders: the comparison's first
  std::vector<Variant> variants = {};                // trained or to be, as planned
  std::map<std::string, fs::path> checkpoints = {};  // of each variant, by its name
  std::map<std::string, std::string> missing = {};   // why a planned variant has none: "its training failed: ..."

  // By wider feed-forward parts: these differ then.
  bool parameters_matched() const { return match == "parameters"; }

  // For readers of what was made of them, and to tell sets apart that cannot be compared.
  std::string described() const {
    return data + " (" + size + (match == "steps" ? "" : ", made equal in " + match) + ")";
  }
};

// Reads home/results.json, also of a comparison that is not finished; of a sweep each variant's best setting counts.
// el_lossless is passed over: its weights are mha's. Throws Error for what holds no comparison of encoders.
EncoderSet find_encoders(const fs::path& home);

// The checkpoint of a variant. Throws Error saying where it was looked for and why there is none.
fs::path encoder_of(const EncoderSet& set, const std::string& variant);

// Throws Error, naming two variants and what differs, unless the encoders have the same tokenizer and, attention and
// what the variants are made of aside, the same sizes: else more would be compared.
void check_comparable(const EncoderSet& set, const std::vector<Variant>& variants);

}  // namespace headshare
