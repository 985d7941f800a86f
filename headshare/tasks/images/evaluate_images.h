// These functions judge vision transformers on images.
#pragma once

#include "headshare/models/vision.h"
#include "headshare/tasks/images/image_options.h"
#include "headshare/tasks/text_to_score.h"
#include "headshare/train/task.h"

namespace headshare {

// Returns the mean loss of the images, "accuracy", the share whose class has the highest logit, and "top-5" where there
// are at least 10 classes: the share whose class is among the five highest. Blocks are the images: 1 where the class is
// right, else 0; outputs are the names of the classes that the model tells. `batch` images are scored at once. The
// model is in evaluation mode.
Evaluation evaluate_images(VisionTransformer model, const ImageSet& set, int64_t batch,
                           const Task::Progress& progress = {});

// Scores a trained model on a part of a directory of images. Throws Error where its classes are not the model's.
TextScores score_images(const TextToScore& asked, const ImageTaskOptions& options);

}  // namespace headshare
