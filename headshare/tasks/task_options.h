// A task and its model are made of TaskOptions: options that the tasks of every family have, and each family's own.
#pragma once

#include <string>

#include "headshare/base/options/own_options.h"
#include "headshare/models/blocks/options.h"

namespace headshare {

struct TaskOptions {
  std::string task = "language-model";  // what --task calls it (family.h)
  TransformerOptions model = {};        // what models of every kind have; a family's own have the rest
  int64_t batch_size = 32;              // of a micro-batch, in windows of text or sequences

  // Returns the options that only some families have, by their type: TextOptions, and those of one family.
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

// Lists the options of text, of the model and of batches, in the order of files of settings; some tasks refuse those of
// text.
Fields fields(TaskOptions& options);

}  // namespace headshare
