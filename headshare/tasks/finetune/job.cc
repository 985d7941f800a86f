#include "headshare/tasks/finetune/job.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/base/files/file.h"
#include "headshare/base/files/placeholder.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/format.h"
#include "headshare/tasks/finetune/jobs.h"

namespace headshare {
namespace {

const std::vector<std::string>& own_tables() {
  static const std::vector<std::string> names = {"classify", "pair", "regress"};
  return names;
}

// The diagnostics cannot be trained on, having no training part; they are scored with the task whose labels they share.
bool can_be_trained_on(const TaskInfo& task) { return !task.train.empty() && task.name != kMismatched; }

std::string full_name(const TaskInfo& task) { return suite_name(task.suite) + "/" + task.name; }

std::vector<std::string> suite_jobs(Suite suite) {
  std::vector<std::string> names;
  for (const TaskInfo& task : task_list()) {
    if (task.suite == suite && can_be_trained_on(task)) names.push_back(full_name(task));
  }
  return names;
}

std::optional<Suite> suite_called(const std::string& name) {
  for (const Suite suite : {Suite::kGlue, Suite::kSuperGlue}) {
    if (name == suite_name(suite)) return suite;
  }
  return std::nullopt;
}

// Finds the suites that have a task: "rte" -> "glue/rte" and "superglue/rte".
std::vector<std::string> with_suites(const std::string& name) {
  std::vector<std::string> found;
  for (const Suite suite : {Suite::kGlue, Suite::kSuperGlue}) {
    try {
      const TaskInfo& task = find_task(suite, name);
      if (can_be_trained_on(task)) found.push_back(full_name(task));
    } catch (const Error&) {
      // This suite has no such task.
    }
  }
  return found;
}

std::string resolved_name(const std::string& name) {
  const std::vector<std::string> all = job_names();
  if (std::find(all.begin(), all.end(), name) != all.end()) return name;
  const size_t slash = name.find('/');
  if (slash != std::string::npos) {
    if (const auto suite = suite_called(name.substr(0, slash))) {
      const TaskInfo& task = find_task(*suite, name.substr(slash + 1));
      HS_CHECK(can_be_trained_on(task), task.title, " has no training part of its own; it is scored together with ",
               task.suite == Suite::kGlue ? "glue/mnli" : "superglue/rte");
      return full_name(task);
    }
  }
  const std::vector<std::string> found = with_suites(name);
  HS_CHECK(found.size() < 2, "both suites have a task '", name, "': write ", found.front(), " or ", found.back());
  if (found.size() == 1) return found.front();
  std::string list;
  std::vector<std::string> near = all;
  for (const std::string& one : all) {
    list += (list.empty() ? "" : ", ") + one;
    near.push_back(one.substr(one.find('/') + 1));
  }
  throw Error(join_text("there is no task ", brief_text(name), did_you_mean(name, near),
                        "; known are glue, superglue, ", list));
}

}  // namespace

std::string class_note(const ClassCounts& classes) {
  int64_t total = 0;
  for (const auto& [name, count] : classes) total += count;
  std::string text = join_text(total, " training examples");
  constexpr size_t kMost = 10;
  for (size_t i = 0; i < std::min(kMost, classes.size()); ++i) {
    const auto& [name, count] = classes[i];
    const double share = static_cast<double>(count) / static_cast<double>(total);
    text += join_text(i == 0 ? "; " : ", ", name, " ", percent_text(share, 1));
  }
  return text + (classes.size() > kMost ? join_text(", ... (", classes.size(), " classes)") : "");
}

Fields fields(TaskFiles& o) {
  return {
      naming_directory(field("data", &o.data,
                             "directory with the data of GLUE or SuperGLUE as the official archives unpack, also .gz")),
      naming_file(
          field("train", &o.train, "the training file, where it is not found in --data", {.aliases = {"train-file"}})),
      naming_file(field("validation", &o.validation, "the validation file likewise; else see --validation-fraction",
                        {.aliases = {"validation-file", "dev"}})),
      naming_file(field("test", &o.test, "one more file to answer, and to score where it has labels",
                        {.aliases = {"test-file"}})),
  };
}

std::vector<std::string> job_names() {
  std::vector<std::string> names = suite_jobs(Suite::kGlue);
  for (std::string& name : suite_jobs(Suite::kSuperGlue)) names.push_back(std::move(name));
  names.emplace_back(kSquadTask);
  names.insert(names.end(), own_tables().begin(), own_tables().end());
  return names;
}

std::string job_folder(std::string name) {
  std::replace(name.begin(), name.end(), '/', '-');
  return name;
}

std::vector<std::string> expand_job_names(const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (const std::string& name : names) {
    const std::optional<Suite> suite = suite_called(name);
    for (std::string& one : suite ? suite_jobs(*suite) : std::vector{resolved_name(name)}) {
      if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(std::move(one));
    }
  }
  return all;
}

void check_files_differ(const std::vector<std::pair<const char*, std::string>>& files) {
  for (size_t i = 0; i < files.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      std::error_code missing;  // whoever reads the file reports the error
      HS_CHECK(!fs::equivalent(files[i].second, files[k].second, missing), files[k].first, " and ", files[i].first,
               " are one file, ", files[i].second,
               "; give each its own, or hold a part of the training file back with --validation-fraction");
    }
  }
}

std::unique_ptr<FineTuneJob> open_job(const std::string& name, const JobOptions& options,
                                      const LoadedEncoder& trained) {
  const TaskFiles& files = options.files;
  check_files_differ({{"--train", files.train}, {"--validation", files.validation}, {"--test", files.test}});
  HS_CHECK(files.validation.empty() || options.tuning.validation_fraction == 0,
           "--validation names a file and --validation-fraction holds a part of another back; leave one out");
  if (name == kSquadTask) return open_squad_job(options, trained);
  const auto& tables = own_tables();
  if (std::find(tables.begin(), tables.end(), name) != tables.end()) return open_table_job(name, options, trained);
  const size_t slash = name.find('/');
  HS_CHECK(slash != std::string::npos, "there is no task '", name, "'");
  return open_suite_job(find_task(*suite_called(name.substr(0, slash)), name.substr(slash + 1)), options, trained);
}

}  // namespace headshare
