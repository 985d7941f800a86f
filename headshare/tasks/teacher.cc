#include "headshare/tasks/teacher.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/files/placeholder.h"
#include "headshare/models/position_limit.h"
#include "headshare/text/tokenizer_file.h"

namespace headshare {
namespace {

std::string named(const fs::path& teacher) { return "the teacher " + teacher.string(); }

void check_fits(const DistillationOptions& options, const TeacherModel& teacher, const ModelOptions& student) {
  const std::string who = named(teacher.directory);
  HS_CHECK(&teacher.options.kind() == &student.kind(), who, " is ", with_article(teacher.options.kind()),
           " and the student ", with_article(student.kind()), "; choose a teacher of the same kind");
  const TransformerOptions& theirs = teacher.options.common();
  const TransformerOptions& own = student.common();
  HS_CHECK(theirs.vocabulary == own.vocabulary, who, " has a vocabulary of ", theirs.vocabulary,
           " tokens and the student one of ", own.vocabulary, "; give the student the same tokenizer and ",
           "--model-vocabulary ", theirs.vocabulary, ", or choose another teacher");
  HS_CHECK(!has_position_limit(theirs.positions) || theirs.context >= own.context, who, " has positions for ",
           theirs.context, " tokens and the student's context is ", own.context, "; choose --context ", theirs.context,
           " or less");
  HS_CHECK(options.learning.hidden == 0 || theirs.attention.d_model == own.attention.d_model,
           "--teacher-hidden compares hidden states, and those of ", who, " have width ", theirs.attention.d_model,
           ", the student's ", own.attention.d_model, "; leave --teacher-hidden out, which compares scores alone");
}

template <class Model>
Model ready(Model model, c10::Device device) {
  model->to(device);
  model->eval();
  return model;
}

}  // namespace

Fields fields(DistillationOptions& o) {
  DistillationWeights& how = o.learning;
  return {
      naming_model(
          field("teacher", &o.teacher,
                "a trained model (run directory or checkpoint) with the same tokenizer to learn from as well: at each "
                "target the model also learns the teacher's distribution over tokens (distillation)",
                {.aliases = {"teacher-model", "teacher-model-name-or-path"}})),
      field("teacher-share", &how.scores.share,
            "A in the loss (1 - A) cross-entropy + A T^2 KL(teacher || model); 0: the teacher is only compared with",
            {.min = 0, .max = 1, .aliases = {"kd-ratio", "distillation-alpha"}}),
      field("teacher-temperature", &how.scores.temperature, "T: scores of both are divided by it before their softmax",
            {.min = 0.01, .max = 1000, .aliases = {"kd-temperature", "distillation-temperature"}}),
      field("teacher-hidden", &how.hidden,
            "weight of the mean squared difference between the last hidden states, relative to the teacher's mean "
            "square; the loss grows by it",
            {.min = 0, .max = 1e6}),
  };
}

std::vector<std::string> options_of_teachers() {
  DistillationOptions any;
  std::vector<std::string> names;
  for (const Field& one : fields(any)) {
    if (one.name != "teacher") names.push_back(one.name);
  }
  return names;
}

void check_distillation(const DistillationOptions& options) {
  if (options.given()) {
    find_checkpoint(options.teacher);
    return;
  }
  DistillationOptions given = options;
  DistillationOptions untouched;
  const nlohmann::json defaults = to_json(fields(untouched));
  for (const Field& one : fields(given)) {
    HS_CHECK(one.value() == defaults.at(one.name), "--", one.name, " needs --teacher MODEL; give one, or leave --",
             one.name, " out");
  }
}

TeacherModel find_teacher(const DistillationOptions& options, const ModelOptions& student) {
  TeacherModel teacher{.directory = find_checkpoint(options.teacher), .options = {}};
  teacher.options = read_options(teacher.directory);
  refuse_source(teacher.options, teacher.directory.string(), "teaches no other model");
  check_fits(options, teacher, student);
  const auto* encoder = teacher.options.find<EncoderOptions>();
  HS_CHECK(encoder == nullptr || encoder->masked_head, named(teacher.directory),
           " has no masked-LM head, which predicts masked tokens; choose an encoder of `train --task mlm`");
  return teacher;
}

void check_teacher(const DistillationOptions& options, const ModelOptions& student) {
  if (options.given()) find_teacher(options, student);
}

int64_t teacher_vocabulary(const DistillationOptions& options) {
  return read_options(find_checkpoint(options.teacher)).common().vocabulary;
}

std::shared_ptr<Tokenizer> teacher_tokenizer(const DistillationOptions& options) {
  const fs::path checkpoint = find_checkpoint(options.teacher);
  std::shared_ptr<Tokenizer> tokenizer = load_own_tokenizer(checkpoint);
  HS_CHECK(tokenizer != nullptr, named(checkpoint),
           " has no tokenizer.json; a converted model gets one with `headshare convert --tokenizer PATH`");
  return tokenizer;
}

Decoder load_teacher(const DistillationOptions& options, const DecoderOptions& student, const Tokenizer& tokenizer,
                     c10::Device device) {
  check_same_tokenizer("the teacher " + options.teacher, *teacher_tokenizer(options), tokenizer);
  const TeacherModel teacher = find_teacher(options, student);
  return ready(load_decoder(teacher.directory), device);
}

Encoder load_teacher(const DistillationOptions& options, const EncoderOptions& student, const Tokenizer& tokenizer,
                     c10::Device device) {
  check_same_tokenizer("the teacher " + options.teacher, *teacher_tokenizer(options), tokenizer);
  const TeacherModel teacher = find_teacher(options, student);
  return ready(load_encoder(teacher.directory), device);
}

void check_same_tokenizer(const std::string& who, const Tokenizer& teacher, const Tokenizer& student) {
  HS_CHECK(fingerprint(teacher) == fingerprint(student), who, " has another tokenizer (", teacher.kind(), ", ",
           teacher.vocabulary_size(), " tokens) than the student (", student.kind(), ", ", student.vocabulary_size(),
           " tokens), so that their scores are about different tokens; choose a teacher with the student's tokenizer");
}

double teacher_bytes(const DistillationOptions& options, const TrainingShape& shape) {
  if (!options.given()) return 0;
  const ModelOptions model = read_options(find_checkpoint(options.teacher));
  TrainingShape evaluated = shape;  // more windows at once than a step has
  evaluated.batch = evaluation_batch(model, shape);
  return parameter_bytes(model) + std::max(evaluation_bytes(model, shape), evaluation_bytes(model, evaluated));
}

}  // namespace headshare
