#include "headshare/text/added/added_tokens.h"

#include <algorithm>
#include <set>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/text/unicode/bert_characters.h"
#include "headshare/text/unicode/utf8.h"

namespace headshare {
namespace {

constexpr size_t kLongestAdded = 1024;  // bytes

bool has_id(const std::vector<AddedToken>& tokens, int32_t id) {
  return std::any_of(tokens.begin(), tokens.end(), [id](const AddedToken& one) { return one.id == id; });
}

void check(const std::vector<AddedToken>& tokens, size_t vocabulary, const std::string& where) {
  std::set<std::string_view> texts;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const AddedToken& one = tokens[i];
    HS_CHECK(one.id >= 0 && static_cast<size_t>(one.id) < vocabulary, where, ": the added id ", one.id,
             " is not among the ", vocabulary, " tokens");
    HS_CHECK(i == 0 || tokens[i - 1].id < one.id, where, ": the ids of added tokens must ascend, but ", one.id,
             " follows ", i == 0 ? 0 : tokens[i - 1].id);
    HS_CHECK(!one.text.empty() && one.text.size() <= kLongestAdded, where, ": the added token ", one.id, " has ",
             one.text.size(), " bytes; wanted are 1 to ", kLongestAdded);
    check_utf8(one.text, join_text(where, ": the added token ", one.id));
    HS_CHECK(texts.insert(one.text).second, where, ": the added token ", brief_json(one.text), " has two ids");
  }
}

bool begins_with_white_space(const AddedToken& token) {
  size_t at = 0;
  return is_bert_space(next_code_point(token.text, &at));
}

// Such a token could begin in white space that is taken already, and then no order of the parts would be right.
void check_white_space(const std::vector<AddedToken>& tokens, const std::string& where) {
  const auto strips =
      std::find_if(tokens.begin(), tokens.end(), [](const AddedToken& one) { return one.strips_right; });
  const auto begins = std::find_if(tokens.begin(), tokens.end(), begins_with_white_space);
  HS_CHECK(strips == tokens.end() || begins == tokens.end(), where, ": the added token ", brief_json(strips->text),
           " takes the white space behind it (rstrip), and ", brief_json(begins->text),
           " begins with white space; headshare reads no vocabulary with both: set rstrip to false");
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const std::vector<AddedToken>& roles, size_t vocabulary,
                         const std::function<std::string(std::string_view)>& normalise, const std::string& where) {
  check(tokens, vocabulary, where);
  std::vector<AddedToken> ordered;  // of equal normalised texts the first counts: special ones come first
  for (const AddedToken& role : roles) {
    if (!has_id(tokens, role.id) && !role.text.empty()) ordered.push_back(role);
  }
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(ordered),
               [](const AddedToken& one) { return one.special; });
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(ordered),
               [](const AddedToken& one) { return !one.special; });
  check_white_space(ordered, where);
  std::vector<AddedToken> plain[2], normalized[2];  // [0]: searched for in texts; [1]: all
  for (AddedToken token : ordered) {
    const bool has_role = has_id(roles, token.id);
    auto& lists = token.normalized ? normalized : plain;
    if (token.normalized) {
      const std::string text = normalise(token.text);
      HS_CHECK(!text.empty(), where, ": normalisation makes nothing of the added token ", brief_json(token.text),
               "; set normalized to false for it");
      token.text = text;
    }
    if (!has_role) lists[0].push_back(token);
    lists[1].push_back(std::move(token));
  }
  in_text_ = {AddedSearch(std::move(plain[0])), AddedSearch(std::move(normalized[0]))};
  all_ = {AddedSearch(std::move(plain[1])), AddedSearch(std::move(normalized[1]))};
  std::erase_if(tokens,
                [&](const AddedToken& one) { return has_id(roles, one.id) && one.special && !one.has_options(); });
  listed_ = std::move(tokens);
}

const AddedToken* AddedTokens::find(int32_t id) const {
  const auto found = std::lower_bound(listed_.begin(), listed_.end(), id,
                                      [](const AddedToken& one, int32_t wanted) { return one.id < wanted; });
  return found != listed_.end() && found->id == id ? &*found : nullptr;
}

}  // namespace headshare
