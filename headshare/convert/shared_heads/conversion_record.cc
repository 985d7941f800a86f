#include "headshare/convert/shared_heads/conversion_record.h"

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/record_list.h"
#include "headshare/base/strings/format.h"
#include "headshare/convert/shared_heads/conversions.h"

namespace headshare {
namespace {

RecordList<ConversionRecord>& conversions() {
#define HS_CONVERSION(name) name##_conversion(),
  static RecordList<ConversionRecord> all({
#include "headshare/convert/shared_heads/conversions.inc"
  });
#undef HS_CONVERSION
  return all;
}

}  // namespace

std::vector<std::shared_ptr<const ConversionRecord>> conversion_records() { return conversions().all(); }

const ConversionRecord& conversion_record(const std::string& scheme) {
  const std::string plain = canonical_scheme(scheme);
  std::vector<std::string> known;
  for (const auto& one : conversion_records()) {
    if (one->scheme == plain) return *one;
    known.push_back(one->scheme);
  }
  throw Error(join_text("the heads of a trained model cannot be converted to ", brief_text(scheme), "; choose ",
                        list_text(known, "or"), did_you_mean(scheme, known)));
}

AddedConversion::AddedConversion(ConversionRecord record) : record_(conversions().add(std::move(record))) {}
AddedConversion::~AddedConversion() { conversions().take_out(record_); }

}  // namespace headshare
