#include "headshare/report/html/html_page.h"

namespace headshare {

// The files beside this one, as the build embeds them (cmake/Embed.cmake).
const char* const kPageStyle =
#include "page.css.inc"
    ;
const char* const kPageScript =
#include "page.js.inc"
    ;
const char* const kPageScriptHash = "SLjAXN8m8R6FgyVpzoro4Qc/kOwlqX2wttBkcMl6Th8=";

}  // namespace headshare
