#include "headshare/torch_library/classes.h"

// The package reads this line in the file before it loads it: a library that another torch was built with does not
// load.
extern "C" {
extern const char headshare_built_with_torch[];
__attribute__((used)) const char headshare_built_with_torch[] = "HEADSHARE_BUILT_WITH_TORCH=" HEADSHARE_TORCH_VERSION;
}

namespace headshare {

// One place, because a class must be known before another one's functions name it.
TORCH_LIBRARY_FRAGMENT(headshare, library) {
  register_tokenizer(&library);
  register_attention_layer(&library);
  register_model(&library);
}

}  // namespace headshare
