// ViT and DeiT as timm stores them (timm/models/vision_transformer.py, deit.py): a state dict with blocks.0.attn.qkv,
// and a config.json that names an "architecture" instead of a model type. transformers calls such a directory
// timm_wrapper.
#pragma once

#include "headshare/convert/hf/model_type.h"

namespace headshare {

inline constexpr const char* kTimmType = "timm_wrapper";

// Reading: vit_* and deit_* of the sizes tiny, small, base and large, deit_*_distilled_*, with the model_args that
// change sizes (img_size, patch_size, in_chans, embed_dim, depth, num_heads) and qkv_bias. The mean and the deviation
// of pixels are those of pretrained_cfg. Throws Error, by name, for other architectures, other model_args and a
// global_pool other than "token".
HfModelType timm_type();

}  // namespace headshare
