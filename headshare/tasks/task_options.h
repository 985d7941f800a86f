// What a task and its model are made of: options that many families of tasks read, and each family's own.
#pragma once

#include <string>

#include "headshare/base/own_options.h"
#include "headshare/tasks/language/language_model.h"

namespace headshare {

struct TaskOptions {
  std::string task = "language-model";  // what --task calls it (family.h)
  LanguageModelOptions language = {};   // the model and the batches of every family, the text of those that read one

  // The options that one family has besides, by their type.
  template <class Own>
  Own& own() {
    return own_.get<Own>();
  }
  template <class Own>
  const Own& own() const {
    return own_.get<Own>();
  }

 private:
  OwnOptions own_;
};

}  // namespace headshare
