#include "headshare/tasks/task_options.h"

#include "headshare/tasks/text_options.h"

namespace headshare {

Fields fields(TaskOptions& o) {
  TextOptions& text = o.own<TextOptions>();
  Fields list = data_fields(text);
  append(&list, fields(o.model));
  list.push_back(batch_size_field(&o.batch_size));
  append(&list, window_fields(text));
  append(&list, fields(text.distillation));
  return list;
}

}  // namespace headshare
