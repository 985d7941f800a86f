#include "headshare/host/task_paths.h"

#include "headshare/host/resolved_file.h"
#include "headshare/tasks/family.h"

namespace headshare {

void make_paths_whole(TaskOptions* options) {
  LanguageModelOptions& language = options->language;
  std::vector<std::string*> paths = {&language.tokenizer_path, &language.tokenizer.hash_merges,
                                     &language.distillation.teacher};
  for (auto* texts : {&language.data.text, &language.data.validation_text, &language.data.test_text}) {
    for (std::string& path : *texts) paths.push_back(&path);
  }
  for (const TaskFamily* family : task_families()) {
    for (std::string* path : family->paths(*options)) paths.push_back(path);
  }
  for (std::string* path : paths) *path = whole_path(*path);
}

}  // namespace headshare
