#include "headshare/tasks/judged_parts.h"

#include <utility>
#include <vector>

#include "headshare/base/notice.h"
#include "headshare/train/other_data.h"

namespace headshare {
namespace {

constexpr const char* kJudged = "judged";

std::vector<std::pair<std::string, std::string>> named(const JudgedParts& parts) {
  return {{"validation", parts.validation}, {"test", parts.test}};
}

}  // namespace

void note_judged(const JudgedParts& parts, nlohmann::json* state) {
  for (const auto& [name, fingerprint] : named(parts)) (*state)[kJudged][name] = fingerprint;
}

void check_judged(const JudgedParts& parts, const nlohmann::json& state, const std::string& where) {
  const auto noted = state.find(kJudged);
  if (noted == state.end()) {
    if (parts.validation.empty() && parts.test.empty()) return;
    notice(join_text(where, " is of an earlier version and does not say which validation and test data the run has: ",
                     "with other data than before, its best model would be chosen among losses on both"));
    return;
  }
  for (const auto& [name, fingerprint] : named(parts)) {
    const nlohmann::json before = noted->is_object() ? noted->value(name, nlohmann::json()) : nlohmann::json();
    if (before == fingerprint) continue;
    throw OtherData(join_text("cannot go on with another ", name, " part: that of ", where, " is ", before.dump(),
                              ", but this one is ", nlohmann::json(fingerprint).dump(), "; give the same ", name,
                              " data and tokenizer, or start a new run"));
  }
}

}  // namespace headshare
