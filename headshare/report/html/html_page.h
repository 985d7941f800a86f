// What every report.html holds, whatever was compared: its style, and the script that sorts tables.
#pragma once

namespace headshare {

extern const char* const kPageStyle;

// Works without: headings become buttons only where scripts run.
extern const char* const kPageScript;
// Of kPageScript, for the content security policy: (echo; cat page.js) | openssl dgst -sha256 -binary | base64. The
// tests of the page fail where it is another script's.
extern const char* const kPageScriptHash;

}  // namespace headshare
