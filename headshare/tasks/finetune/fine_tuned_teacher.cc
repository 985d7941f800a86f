#include "headshare/tasks/finetune/fine_tuned_teacher.h"

#include <ATen/ATen.h>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/models/position_limit.h"
#include "headshare/tasks/finetune/predict.h"

namespace headshare {
namespace {

std::string outputs_text(const TaskHeadOptions& head) {
  return head.labels.empty() ? join_text(head.outputs, head.outputs == 1 ? " number" : " numbers")
                             : "the labels " + list_text(head.labels);
}

void check_same_task(const TunedEncoder& teacher, const TeacherWanted& wanted) {
  const std::string who = "the teacher " + teacher.encoder.directory.string();
  HS_CHECK(teacher.note.task == wanted.task, who, " was fine-tuned on ", teacher.note.task, " and the task is ",
           wanted.task, "; choose a model of `headshare finetune --task ", wanted.task, "`");
  const TaskHeadOptions& head = teacher.encoder.model->options().task_head;
  HS_CHECK(head.kind == wanted.head.kind && head.outputs == wanted.head.outputs && head.labels == wanted.head.labels,
           who, " answers with ", outputs_text(head), " and the student learns ", outputs_text(wanted.head),
           "; choose a teacher that was fine-tuned on data with the same labels");
  check_same_tokenizer(who, *teacher.encoder.tokenizer, wanted.tokenizer);
  const EncoderOptions& model = teacher.encoder.model->options();
  HS_CHECK(!has_position_limit(model.positions) || model.context >= wanted.length, who, " has positions for ",
           model.context, " tokens and rows have ", wanted.length, "; choose --max-length ", model.context, " or less");
}

void check_same_width(const TunedEncoder& teacher, const TeacherWanted& wanted) {
  const int64_t width = teacher.encoder.model->options().attention.d_model;
  HS_CHECK(width == wanted.d_model, "--teacher-hidden compares hidden states, and those of the teacher ",
           teacher.encoder.directory.string(), " have width ", width, ", the student's ", wanted.d_model,
           "; leave --teacher-hidden out, which compares scores alone");
}

}  // namespace

Fields tuned_teacher_fields(DistillationOptions& options) {
  Fields list = fields(options);
  list.front().help =
      "a model that was fine-tuned on the same task, with the same labels and tokenizer, to learn from as well: its "
      "scores are compared with the model's own (distillation)";
  return list;
}

FineTunedTeacher open_tuned_teacher(const DistillationOptions& options, const TeacherWanted& wanted) {
  if (!options.given()) return {};
  const TunedEncoder teacher = open_tuned(options.teacher, at::kCPU);
  check_same_task(teacher, wanted);
  if (options.learning.hidden > 0) check_same_width(teacher, wanted);
  return {.model = teacher.encoder.model, .how = options.learning};
}

Evaluation FineTunedTeacher::evaluated(const std::function<Evaluation()>& evaluate) const {
  if (!*evaluation) *evaluation = evaluate();
  return **evaluation;
}

Tensor divergences(const Tensor& student, const Tensor& teacher, double temperature) {
  constexpr double kNoShare = -1e4;  // far below scores, and finite: -inf less -inf is no number
  const auto logs = [&](const Tensor& scores) {
    return at::log_softmax((scores.to(at::kFloat) / temperature).clamp_min(kNoShare), 1);
  };
  return at::kl_div(logs(student), logs(teacher), at::Reduction::None, /*log_target=*/true).sum(1);
}

Tensor taught_sum(const Tensor& losses, const Tensor& divergences, const Tensor& states, const Tensor& teacher_states,
                  const DistillationWeights& how) {
  const double share = how.scores.share, temperature = how.scores.temperature;
  const Tensor sum = (losses * (1 - share) + divergences * (share * temperature * temperature)).sum();
  if (how.hidden == 0) return sum;
  const double weight = how.hidden * static_cast<double>(losses.size(0));
  return sum + hidden_difference(states, teacher_states) * weight;
}

}  // namespace headshare
