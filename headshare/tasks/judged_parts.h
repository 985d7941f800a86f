// JudgedParts notes in a run's checkpoints which data its evaluations are of: the best score so far must not be
// compared with scores of another part.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace headshare {

// It holds the fingerprints of the parts as models read them; "": there is no such part.
struct JudgedParts {
  std::string validation;
  std::string test;
};

// Adds the fingerprints to the state of a task.
void note_judged(const JudgedParts& parts, nlohmann::json* state);

// Throws OtherData, led by `where`, when `state` notes other fingerprints. A state without notes, from an older
// program, passes, with a notice where there are parts.
void check_judged(const JudgedParts& parts, const nlohmann::json& state, const std::string& where);

}  // namespace headshare
