// The loss of a student, put together of what it learns from a lesson.
#pragma once

#include "headshare/models/lesson.h"

namespace headshare {

// `found`, the loss of scores over `tokens` targets, and how.hidden times hidden_difference() for each of them, between
// the student's last hidden states [tokens, E] and those of the lesson. Throws Error as that does; with a weight of 0
// it is not formed.
SummedLoss taught_loss(const DistilledLoss& found, const Tensor& hidden, int64_t tokens, const Lesson& lesson,
                       const Learning& how);

}  // namespace headshare
