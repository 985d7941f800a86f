// Each kind of job is defined in a file of its own; job.h chooses.
#pragma once

#include <memory>

#include "headshare/tasks/finetune/job.h"

namespace headshare {

std::unique_ptr<FineTuneJob> open_suite_job(const TaskInfo& task, const JobOptions& options,
                                            const LoadedEncoder& trained);
std::unique_ptr<FineTuneJob> open_table_job(const std::string& name, const JobOptions& options,
                                            const LoadedEncoder& trained);
std::unique_ptr<FineTuneJob> open_squad_job(const JobOptions& options, const LoadedEncoder& trained);

// Checks named files, empty where there is none. Throws Error when one file stands in two places: the score of a model
// on the data that trained or chose it says nothing.
void check_files_differ(const std::vector<std::pair<const char*, std::string>>& files);

// Throws Error when a step of the model that the job will make, and its teacher, does not fit into memory.
void check_step_fits(const EncoderOptions& model, const FineTuneOptions& tuning, int64_t length, c10::Device device,
                     TrainingShape shape, const FineTunedTeacher& teacher);

}  // namespace headshare
