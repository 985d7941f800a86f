// Keeps the added tokens of a vocabulary.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/text/added/added_search.h"

namespace headshare {

// Tokens are searched for in two rounds: as they are in the text, and then, in what stands between, normalised in the
// normalised text.
struct AddedSearches {
  AddedSearch plain, normalized;

  bool empty() const { return plain.empty() && normalized.empty(); }

  // Goes through both rounds, for tokenizers that do not normalise text: as AddedSearch::for_each_part.
  template <class Part>
  void for_each_part(std::string_view text, const Part& part) const {
    plain.for_each_part(text, [&](TextSpan span, const AddedToken* token) {
      if (token != nullptr || normalized.empty()) return part(span, token);
      normalized.for_each_part(text.substr(span.begin, span.end - span.begin),
                               [&](TextSpan inner, const AddedToken* found) {
                                 part(TextSpan{span.begin + inner.begin, span.begin + inner.end}, found);
                               });
    });
  }
};

// Special tokens with a role ("[SEP]") are found on request alone: a text must not forge what a task puts around it.
class AddedTokens {
 public:
  AddedTokens() = default;

  // `tokens` are by id, as a file lists them. `roles` are the special tokens with roles, without options; those that
  // `tokens` lists have its options. `normalise` gives the text of a token as it stands in normalised text. Throws
  // Error led by `where` for ids that do not ascend or are not among the `vocabulary` tokens; for texts that are empty,
  // too long, no UTF-8, there twice, or that normalisation makes nothing of; and for tokens that begin with white space
  // beside ones that take what stands behind them.
  AddedTokens(std::vector<AddedToken> tokens, const std::vector<AddedToken>& roles, size_t vocabulary,
              const std::function<std::string(std::string_view)>& normalise, const std::string& where);

  // Returns the tokens by id, without special tokens that have a role and no options.
  const std::vector<AddedToken>& listed() const { return listed_; }
  const AddedToken* find(int32_t id) const;  // among them; nullptr where it is none

  const AddedSearches& in_text() const { return in_text_; }  // without special tokens that have roles
  const AddedSearches& all() const { return all_; }

 private:
  std::vector<AddedToken> listed_;
  AddedSearches in_text_, all_;
};

}  // namespace headshare
