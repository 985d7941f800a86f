// These functions prepare a model that was made from options for its training.
#pragma once

#include <string>

#include "headshare/models/size.h"
#include "headshare/ops/device_memory.h"
#include "headshare/ops/layer.h"

namespace headshare {

// Throws Error when a training step that takes `bytes` does not fit into the memory of the device. `smaller` is the way
// out: "use a smaller --batch-size".
inline void check_training_memory(double bytes, c10::Device device, const TrainingShape& shape,
                                  const std::string& smaller) {
  check_memory_of(device, bytes, "training this model",
                  shape.recompute ? smaller : smaller + ", or --activation-checkpointing");
}

// Gives a model its initial values and whatever else training depends on. `Model` holds any module with clock() and
// set_recompute().
template <class Model>
void prepare(Model& model, uint64_t seed, c10::Device device, const TrainingShape& shape) {
  initialise(*model, seed);
  model->to(device);
  model->clock().seed = seed;
  model->set_recompute(shape.recompute);
}

}  // namespace headshare
