#include "headshare/torch_library/classes.h"

namespace headshare {

// One place, because a class must be known before another one's functions name it.
TORCH_LIBRARY_FRAGMENT(headshare, library) {
  register_tokenizer(&library);
  register_attention_layer(&library);
  register_model(&library);
}

}  // namespace headshare
