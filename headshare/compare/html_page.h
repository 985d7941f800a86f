// What every report.html holds, whatever was compared: its style, and the script that sorts tables.
#pragma once

namespace headshare {

extern const char* const kPageStyle;

// Works without: headings become buttons only where scripts run.
extern const char* const kPageScript;
// Of kPageScript, for the content security policy: printf %s "$script" | openssl dgst -sha256 -binary | base64.
extern const char* const kPageScriptHash;

}  // namespace headshare
