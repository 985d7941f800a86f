// A notice is what a library wants to tell the user without failing. The library never prints: the program that uses it
// installs a handler; without one, notices are dropped.
#pragma once

#include <functional>
#include <string>

namespace headshare {

using NoticeHandler = std::function<void(const std::string&)>;

// Replaces the process-wide handler and returns the one before it.
NoticeHandler set_notice_handler(NoticeHandler handler);

// Hands a sentence to the handler; thread-safe.
void notice(const std::string& sentence);

}  // namespace headshare
