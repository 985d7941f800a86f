#include "headshare/kernels/halves.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "headshare/kernels/halves-inl.h"
#include <hwy/foreach_target.h>
// foreach_target.h must come first
#include "headshare/kernels/halves-inl.h"

#if HWY_ONCE
namespace headshare::kernels {

HWY_EXPORT(halves_table);

const Halves& halves() { return *HWY_DYNAMIC_DISPATCH(halves_table)(); }

}  // namespace headshare::kernels
#endif
