#include "headshare/host/task_paths.h"

#include "headshare/host/resolved_file.h"
#include "headshare/tasks/family.h"

namespace headshare {

void make_paths_whole(TaskOptions* options) {
  TextOptions& text = options->own<TextOptions>();
  std::vector<std::string*> paths = {&text.tokenizer_path, &text.tokenizer.hash_merges, &text.distillation.teacher};
  for (auto* texts : {&text.data.text, &text.data.validation_text, &text.data.test_text}) {
    for (std::string& path : *texts) paths.push_back(&path);
  }
  for (const TaskFamily* family : task_families()) {
    for (std::string* path : family->paths(*options)) paths.push_back(path);
  }
  for (std::string* path : paths) *path = whole_path(*path);
}

}  // namespace headshare
