// Reads and writes the pre_tokenizer of a byte-level BPE: how it cuts text into words.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "headshare/text/bpe/split_rule.h"

namespace headshare {

struct HfSplit {
  SplitRule rule = SplitRule::kGpt2;
  bool add_prefix_space = false;
};

// Accepts ByteLevel, with its add_prefix_space and use_regex; and the sequences of a Split by one of our patterns
// (split_rule.h; Isolated, not inverted) and ByteLevel without a pattern, and of single Digits and ByteLevel with one.
// Throws Error led by `where`, which names the part, for others; a pattern is quoted.
HfSplit read_hf_split(const nlohmann::json& part, const std::string& where);

nlohmann::json hf_split_json(const HfSplit& split);

}  // namespace headshare
