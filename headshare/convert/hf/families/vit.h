// ViT and DeiT as Hugging Face transformers stores them (models/vit/modeling_vit.py, models/deit/modeling_deit.py):
// ViTModel, ViTForImageClassification, DeiTModel, DeiTForImageClassification and
// DeiTForImageClassificationWithTeacher.
#pragma once

#include "headshare/convert/hf/model_type.h"

namespace headshare {

// Reading: our vision transformer of scheme mha with learned positions and norms before the parts; heads where the
// directory has them, with the names of the classes. Without qkv_bias the biases of queries, keys and values are zeros.
// The pooler and the token of masked patches are left out with a note. preprocessor_config.json gives the mean and the
// deviation of pixels; a note says where it makes another size of an image than the model reads.
//
// Writing: the class with the model's heads, and preprocessor_config.json: the shorter side becomes the image's size,
// and the middle is cut out, as headshare does it.
HfModelType vit_type();
HfModelType deit_type();  // has a distillation token, with a head of its own or without

}  // namespace headshare
