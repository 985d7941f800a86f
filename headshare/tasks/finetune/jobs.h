// The kinds of jobs, each in its file; job.h chooses.
#pragma once

#include <memory>

#include "headshare/tasks/finetune/job.h"

namespace headshare {

std::unique_ptr<FineTuneJob> open_suite_job(const TaskInfo& task, const JobOptions& options,
                                            const LoadedEncoder& trained);
std::unique_ptr<FineTuneJob> open_table_job(const std::string& name, const JobOptions& options,
                                            const LoadedEncoder& trained);
std::unique_ptr<FineTuneJob> open_squad_job(const JobOptions& options, const LoadedEncoder& trained);

// Refused now rather than in the middle of a grid: a step of the model that the job will make.
void check_step_fits(const EncoderOptions& model, const FineTuneOptions& tuning, int64_t length, c10::Device device,
                     TrainingShape shape);

}  // namespace headshare
