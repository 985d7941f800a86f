// What a task and its model are made of: options that many families of tasks read, and each family's own.
#pragma once

#include <any>
#include <map>
#include <string>
#include <typeindex>

#include "headshare/tasks/language/language_model.h"

namespace headshare {

struct TaskOptions {
  std::string task = "language-model";  // what --task calls it (family.h)
  LanguageModelOptions language = {};   // the model and the batches of every family, the text of those that read one

  // The options that one family has besides, by their type.
  template <class Own>
  Own& own() {
    std::any& place = own_[typeid(Own)];
    if (!place.has_value()) place = Own();
    return std::any_cast<Own&>(place);
  }
  template <class Own>
  const Own& own() const {
    static const Own untouched = {};
    const auto found = own_.find(typeid(Own));
    return found == own_.end() ? untouched : std::any_cast<const Own&>(found->second);
  }

 private:
  std::map<std::type_index, std::any> own_;
};

}  // namespace headshare
