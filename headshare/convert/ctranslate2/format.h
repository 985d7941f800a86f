// Folders of CTranslate2 as a format that is written (ctranslate2/specs/transformer_spec.py,
// TransformerDecoderModelSpec).
#pragma once

#include "headshare/convert/foreign/foreign_format.h"

namespace headshare {

ForeignFormat ct2_format();

}  // namespace headshare
