// Each scheme's own file defines its record: mha_scheme(), gqa_scheme(), ...
#pragma once

#include "headshare/attention/scheme.h"
#include "headshare/attention/scheme_record.h"

namespace headshare {

#define HS_SCHEME(name) SchemeRecord name##_scheme();
#include "headshare/attention/schemes.inc"
#undef HS_SCHEME

// This is SchemeRecord::make of a class that its options alone determine.
template <class Made>
std::shared_ptr<Scheme> make_as(const AttentionOptions& resolved) {
  return std::make_shared<Made>(resolved);
}

}  // namespace headshare
