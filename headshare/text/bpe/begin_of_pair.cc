#include "headshare/text/bpe/begin_of_pair.h"

#include "headshare/base/error.h"
#include "headshare/base/json/json_input.h"

namespace headshare {

const EnumNames<BeginOfPair>& begin_of_pair_names() {
  static const EnumNames<BeginOfPair> names = {{BeginOfPair::kAgain, "again"},
                                               {BeginOfPair::kAgainOneSegment, "again-one-segment"},
                                               {BeginOfPair::kOnce, "once"},
                                               {BeginOfPair::kOnceOneSegment, "once-one-segment"}};
  return names;
}

BeginOfPair begin_of_pair_from_name(const std::string& name, const std::string& where) {
  for (const auto& [form, its_name] : begin_of_pair_names()) {
    if (name == its_name) return form;
  }
  throw Error(join_text(where, ": begin-of-pair must be again, again-one-segment, once or once-one-segment, not ",
                        brief_text(name)));
}

}  // namespace headshare
