#include "headshare/report/html/html_page.h"

namespace headshare {

// The files beside this one, as the build embeds them (cmake/Embed.cmake).
const char* const kPageStyle =
#include "page.css.inc"
    ;
const char* const kPageScript =
#include "page.js.inc"
    ;
const char* const kPageScriptHash = "b1rLmqJWJF4xFIWY/DgjEyNHFny8v0Z29ul8DerQ3IU=";

}  // namespace headshare
