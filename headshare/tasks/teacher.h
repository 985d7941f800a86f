// A teacher is a trained model from which another one, the student, learns besides the text (knowledge distillation).
#pragma once

#include <string>
#include <vector>

#include "headshare/models/checkpoint.h"
#include "headshare/models/teacher_output.h"

namespace headshare {

struct DistillationOptions {
  std::string teacher = {};  // a run or checkpoint directory; "": none
  DistillationWeights learning = {.scores = {.share = 0.5, .temperature = 1}, .hidden = 0};

  bool given() const { return !teacher.empty(); }
  // Tells whether a training step asks the teacher; otherwise the teacher is there to be compared with.
  bool teaches() const { return given() && (learning.scores.share > 0 || learning.hidden > 0); }
};

Fields fields(DistillationOptions& options);

// Lists the names of those options that mean nothing without a teacher.
std::vector<std::string> options_of_teachers();

// Throws Error where the teacher is no model, and if --teacher-* options are given without --teacher.
void check_distillation(const DistillationOptions& options);

// A TeacherModel is a teacher's checkpoint and what its config.json says; no weights are read.
struct TeacherModel {
  fs::path directory;
  ModelOptions options;
};

// Throws Error, naming both models and the way out, where the teacher cannot teach a student of these (resolved)
// options. The reasons: the model is of the other kind, has another vocabulary, has learned or sinusoidal positions for
// fewer tokens than the student's context, has no masked-LM head, or has hidden states of another width where these are
// learnt from.
TeacherModel find_teacher(const DistillationOptions& options, const ModelOptions& student);

// Throws Error as find_teacher() does; does nothing where no teacher is given.
void check_teacher(const DistillationOptions& options, const ModelOptions& student);

// Return how many tokens the teacher has room for, and its tokenizer. They throw Error where there is no such model.
int64_t teacher_vocabulary(const DistillationOptions& options);
std::shared_ptr<Tokenizer> teacher_tokenizer(const DistillationOptions& options);

// Reads the weights, which must be finite, into a model in evaluation mode on `device`. `tokenizer`, the student's,
// must be the teacher's. Throws Error as find_teacher() does.
Decoder load_teacher(const DistillationOptions& options, const DecoderOptions& student, const Tokenizer& tokenizer,
                     c10::Device device);
Encoder load_teacher(const DistillationOptions& options, const EncoderOptions& student, const Tokenizer& tokenizer,
                     c10::Device device);

// Throws Error, led by `who`, where the two tokenizers differ; the teacher may be of any kind.
void check_same_tokenizer(const std::string& who, const Tokenizer& teacher, const Tokenizer& student);

// Returns the bytes that a teacher takes besides a training step: its weights, and a forward pass over what it reads or
// is scored on.
double teacher_bytes(const DistillationOptions& options, const TrainingShape& shape);

}  // namespace headshare
