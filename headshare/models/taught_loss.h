// The loss of a student has two parts, from the teacher's logits and from its hidden states.
#pragma once

#include "headshare/models/teacher_output.h"

namespace headshare {

// Adds to `found`, the loss of logits over `tokens` targets, how.hidden times hidden_difference() for each of them,
// between the student's last hidden states [tokens, E] and those of the teacher. Throws Error as hidden_difference()
// does; with a weight of 0 it is not computed.
SummedLoss taught_loss(const DistilledLoss& found, const Tensor& hidden, int64_t tokens, const TeacherOutput& taught,
                       const DistillationWeights& how);

}  // namespace headshare
