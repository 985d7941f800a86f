// The record of each conversion, which its own file defines: gqa_conversion(), mhe_mul_conversion(), ...
#pragma once

#include "headshare/convert/shared_heads/conversion_record.h"

namespace headshare {

#define HS_CONVERSION(name) ConversionRecord name##_conversion();
#include "headshare/convert/shared_heads/conversions.inc"
#undef HS_CONVERSION

}  // namespace headshare
