// Names what stands before the second text of a pair where a token stands before every text.
#pragma once

#include <string>

#include "headshare/base/options/field.h"

namespace headshare {

// These are the forms that Hugging Face's tokenizer.json has for the pair. No task of headshare reads them: they are
// kept to be written back.
enum class BeginOfPair {
  kAgain,            // <s> A <s> B, where B is the second segment: Llama 3, Mistral, Gemma
  kAgainOneSegment,  // the same in one segment
  kOnce,             // <s> A B, where B is the second segment
  kOnceOneSegment,   // the same in one segment
};

// Returns the names in files of ours: "again", "again-one-segment", "once", "once-one-segment".
const EnumNames<BeginOfPair>& begin_of_pair_names();

// Returns the form of this name; throws Error led by `where` for another name.
BeginOfPair begin_of_pair_from_name(const std::string& name, const std::string& where);

}  // namespace headshare
