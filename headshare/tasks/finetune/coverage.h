// Coverage counts the words of a task's scored examples that its training examples never have.
#pragma once

#include <optional>

#include "headshare/metrics/coverage.h"
#include "headshare/tasks/finetune/questions.h"

namespace headshare {

// Returns the coverage of `part`, whose answers are given; nothing where the rows do not keep their words. unseen_score
// is the mean of the task's scores.
std::optional<Coverage> coverage_of(const QuestionSet& train, const QuestionKind& kind, const QuestionSet& part,
                                    const Answers& answers);

}  // namespace headshare
