// The pre-trained encoders that a comparison of masked language models left, one for each scheme.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "headshare/attention/options.h"
#include "headshare/base/file.h"

namespace headshare {

struct EncoderSet {
  fs::path home;                                     // the comparison's directory
  std::string data;                                  // what they learned from
  std::string match;                                 // what was made equal: "steps", "time", "parameters"
  int64_t seed = 0;                                  // of the encoders: the comparison's first
  std::map<std::string, fs::path> checkpoints = {};  // of each scheme
  std::map<std::string, std::string> missing = {};   // why a planned scheme has none: "its training failed: ..."
  std::map<std::string, std::string> training = {};  // what came of each: "1500 steps, validation loss 4.25"

  // By wider feed-forward parts: these differ then.
  bool parameters_matched() const { return match == "parameters"; }

  // For readers of what was made of them: the data, and what was made equal where that is not the number of steps.
  std::string described() const { return data + (match == "steps" ? "" : ", made equal in " + match); }
};

// Reads home/results.json, also of a comparison that is not finished; of a sweep each scheme's best setting counts.
// el_lossless is passed over: its weights are mha's. Throws Error for what holds no comparison of encoders.
EncoderSet find_encoders(const fs::path& home);

// The checkpoint of a scheme. Throws Error saying where it was looked for and why there is none.
fs::path encoder_of(const EncoderSet& set, const std::string& scheme);

// Throws Error, naming two schemes and what differs, unless the encoders have the same tokenizer and, attention aside,
// the same sizes: else more than the scheme would be compared.
void check_comparable(const EncoderSet& set, const std::vector<SchemeKind>& schemes);

constexpr const char* kEncodersFile = "encoders.json";

// Writes into home/encoders.json which encoders the schemes of a comparison below `home` are fine-tuned from. Throws
// Error when an earlier call noted another training of one: finished cells would be of one encoder, new ones of
// another.
void note_encoders(const EncoderSet& set, const std::vector<SchemeKind>& schemes, const fs::path& home);

}  // namespace headshare
