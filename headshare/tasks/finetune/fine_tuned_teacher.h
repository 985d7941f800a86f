// A tuned teacher is a fine-tuned encoder from which another one learns the same task as well.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "headshare/tasks/teacher.h"
#include "headshare/train/task.h"

namespace headshare {

struct FineTunedTeacher {
  Encoder model{nullptr};  // in evaluation mode; empty: there is none
  DistillationWeights how = {};

  // Tells whether a training step asks it.
  bool teaches() const { return !model.is_empty() && (how.scores.share > 0 || how.hidden > 0); }

  // Returns what `evaluate` found the first time: every model of a grid has the same teacher and validation part.
  Evaluation evaluated(const std::function<Evaluation()>& evaluate) const;

  std::shared_ptr<std::optional<Evaluation>> evaluation = std::make_shared<std::optional<Evaluation>>();
};

// Lists the options of a teacher that was fine-tuned.
Fields tuned_teacher_fields(DistillationOptions& options);

// TeacherWanted says what a teacher must have been fine-tuned for.
struct TeacherWanted {
  std::string task;            // "glue/cola"
  TaskHeadOptions head = {};   // its labels, too
  const Tokenizer& tokenizer;  // the student's
  int64_t length = 0;          // tokens of a row
  int64_t d_model = 0;         // the student's, for hidden states
};

// Opens the teacher on the CPU. Throws Error, naming both sides and the way out, for a model that was not fine-tuned,
// one of another task, other labels, another tokenizer, positions for shorter rows, or other widths where hidden states
// are compared, and for weights that are not finite.
FineTunedTeacher open_tuned_teacher(const DistillationOptions& options, const TeacherWanted& wanted);

// Returns KL(softmax(teacher / T) || softmax(student / T)) along the second axis of scores [N, C, ...], float32. Scores
// of -inf, where a row has no token, have no share in it.
Tensor divergences(const Tensor& student, const Tensor& teacher, double temperature);

// Returns what the examples of a batch cost a student that learns from a teacher: the sum of (1 - A) loss + A T^2
// divergence, both [N], and how.hidden times hidden_difference() for each example.
Tensor taught_sum(const Tensor& losses, const Tensor& divergences, const Tensor& states, const Tensor& teacher_states,
                  const DistillationWeights& how);

}  // namespace headshare
