// A tokenizer as Python holds it.
#pragma once

#include <torch/custom_class.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headshare/text/interface/tokenizer.h"

namespace headshare {

class TokenizerObject : public torch::CustomClassHolder {
 public:
  explicit TokenizerObject(std::shared_ptr<Tokenizer> tokenizer) : tokenizer_(std::move(tokenizer)) {}

  // Reads tokenizer.json, ours or Hugging Face's, from a file or a folder.
  static c10::intrusive_ptr<TokenizerObject> read(const std::string& path);
  // Reads the same from its text.
  static c10::intrusive_ptr<TokenizerObject> from_json(const std::string& text);

  std::string kind() const { return tokenizer_->kind(); }
  int64_t size() const { return tokenizer_->vocabulary_size(); }
  std::vector<int64_t> encode(const std::string& text, bool special) const;
  std::string decode(const std::vector<int64_t>& ids) const;
  std::optional<int64_t> special(const std::string& role) const;  // a role_name()
  std::string to_json() const { return tokenizer_->to_json().dump(); }

  const std::shared_ptr<Tokenizer>& tokenizer() const { return tokenizer_; }

 private:
  std::shared_ptr<Tokenizer> tokenizer_;
};

}  // namespace headshare
