#include "headshare/report/html/html_page.h"

#include "headshare/report/svg/svg_plot.h"

namespace headshare {
namespace {

// These are the files beside this one, as the build embeds them (cmake/Embed.cmake).
const char* const kPageStyle =
#include "page.css.inc"
    ;
// The page works without the script: headings become buttons only where scripts run.
const char* const kPageScript =
#include "page.js.inc"
    ;
// This is the hash of kPageScript, for the content security policy: (echo; cat page.js) | openssl dgst -sha256 -binary
// | base64. The tests of the page fail where it is another script's.
const char* const kPageScriptHash = "HlRtUnFAtJioPHNCAtSkb4YjfsuHjhpG+HqQlqOEEkw=";

}  // namespace

std::string html_page(const std::string& title, const std::string& body, const std::string& footer) {
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n" +
                     std::string(kPageMark) +
                     "\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                     "style-src 'unsafe-inline'; img-src data:; script-src 'sha256-";
  page += std::string(kPageScriptHash) + "'\">\n<title>" + escape_html(title) + "</title>\n<style>" + kPageStyle +
          "</style>\n</head>\n<body>\n<main>\n" + body + "</main>\n<footer class=\"foot\">" + footer +
          " This page loads nothing.</footer>\n<script>";
  return page + kPageScript + "</script>\n</body>\n</html>\n";
}

}  // namespace headshare
