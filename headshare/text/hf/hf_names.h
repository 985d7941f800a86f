// Reads the special tokens that tokenizer_config.json and special_tokens_map.json name.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "headshare/text/added/added_token.h"

namespace headshare {

// Takes the keys of both files as transformers 5 makes arguments of them for a tokenizer's class. Which of two values
// counts, and the order of tokens, decide ids (docs/design/016).
class HfNames {
 public:
  // Reads the names of tokenizer_config.json, which is null where there is none.
  HfNames(const nlohmann::ordered_json& config, const std::string& where);

  // Adds those of special_tokens_map.json, whose values replace the other's; lists of extra tokens are joined.
  void merge(const nlohmann::ordered_json& map, const std::string& where);

  // Returns the texts that make a token of added_tokens.json special.
  std::set<std::string> listed_as_special() const;

  // Returns the tokens with a name: "pad_token" and its like first, then "entity_token" and whatever else ends in
  // _token. All have kIdOfText. Throws Error led by the file and the key.
  std::vector<AddedToken> named() const;

  // Returns the texts of those that every tokenizer may have, by key.
  std::map<std::string, std::string> texts() const;

  // Returns the list of extra tokens, as named() has them.
  std::vector<AddedToken> extra() const;

 private:
  struct Argument {
    std::string key;
    nlohmann::ordered_json value;
    std::string where;  // the file
  };
  using Arguments = std::vector<Argument>;

  static const Argument* find(const Arguments& arguments, const std::string& key);
  static void set(const Argument& argument, Arguments* arguments);
  static void erase(const std::string& key, Arguments* arguments);
  static std::vector<AddedToken> tokens(const Arguments& arguments);
  void take_extra_object();

  Arguments arguments_;
  Arguments others_;  // names of a model's own that tokenizer_config.json has
};

}  // namespace headshare
