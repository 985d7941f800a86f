#include "headshare/kernels/few_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headshare/kernels/few_rows-inl.h"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include "headshare/kernels/few_rows-inl.h"

#if HWY_ONCE
namespace headshare::kernels {

HWY_EXPORT(few_rows);

void multiply_few_rows(const FewRows& product, int64_t first, int64_t last) {
  HWY_DYNAMIC_DISPATCH(few_rows)(product, first, last);
}

}  // namespace headshare::kernels
#endif
