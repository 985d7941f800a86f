#include "headshare/kernels/passes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headshare/kernels/passes-inl.h"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include "headshare/kernels/passes-inl.h"

#if HWY_ONCE
namespace headshare::kernels {

HWY_EXPORT(passes_table);

const Passes& passes() { return *HWY_DYNAMIC_DISPATCH(passes_table)(); }

}  // namespace headshare::kernels
#endif
