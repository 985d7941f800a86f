#include "headshare/cli/terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "headshare/base/error.h"
#include "headshare/base/strings/number.h"
#include "headshare/base/strings/visible.h"
#include "headshare/cli/terminal/progress.h"

namespace headshare {
namespace {

constexpr int kNarrowest = 40;
constexpr int kWidest = 100;
constexpr int kNoTerminal = 80;  // a file or a pipe
constexpr std::string_view kBold = "\033[1m";
constexpr std::string_view kPlain = "\033[0m";

int descriptor(Stream stream) { return stream == Stream::kOut ? STDOUT_FILENO : STDERR_FILENO; }

bool coloured(Stream stream) {
  const char* refused = std::getenv("NO_COLOR");  // https://no-color.org: any value but the empty one
  const char* terminal = std::getenv("TERM");
  return is_terminal(stream) && (refused == nullptr || *refused == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

[[noreturn]] void fail_output() {
  const int reason = errno;
  if (reason == EPIPE) throw OutputClosed("standard output was closed");
  throw Error(join_text("cannot write to standard output: ", std::strerror(reason)));
}

void write_out(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) fail_output();
}

// Returns what HEADSHARE_JSON_FD names, -1 where it is not set.
int json_descriptor() {
  const char* named = std::getenv("HEADSHARE_JSON_FD");
  if (named == nullptr || *named == '\0') return -1;
  const std::optional<int> descriptor = number_in<int>(named);
  HS_CHECK(descriptor && *descriptor > STDERR_FILENO, "HEADSHARE_JSON_FD=", named,
           ": this is no number of an open file above 2; unset the variable, or name one");
  return *descriptor;
}

void write_to(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    HS_CHECK(written > 0, "cannot write JSON to the file descriptor ", descriptor,
             ", which HEADSHARE_JSON_FD names: ", std::strerror(errno));
    text.remove_prefix(static_cast<size_t>(written));
  }
}

// Prints a message. Nothing can be done about a standard error that cannot be written.
void print_message(const char* kind, const char* colour, std::string_view text) {
  hide_progress();
  const bool in_colour = coloured(Stream::kError);
  const std::string line =
      join_text(in_colour ? colour : "", kind, ":", in_colour ? kPlain : "", " ", message_line(text), "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

bool is_terminal(Stream stream) { return ::isatty(descriptor(stream)) == 1; }

int terminal_width(Stream stream) {
  int columns = 0;
  if (const char* chosen = std::getenv("COLUMNS"); chosen != nullptr) columns = std::atoi(chosen);
  winsize size{};
  if (columns <= 0 && ::ioctl(descriptor(stream), TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  return columns <= 0 ? kNoTerminal : std::clamp(columns, kNarrowest, kWidest);
}

void print(std::string_view text) { write_out(visible(text)); }

void print_styled(std::string_view text) {
  if (!coloured(Stream::kOut)) return print(text);
  while (!text.empty()) {
    const size_t at = std::min(text.find(kBold), text.find(kPlain));
    print(text.substr(0, at));
    if (at == std::string_view::npos) return;
    const std::string_view code = text.substr(at, kBold.size());
    write_out(code);
    text.remove_prefix(at + code.size());
  }
}

void print_json(std::string_view json) { write_out(visible_json(json)); }

void print_text(std::string_view text) { is_terminal(Stream::kOut) ? print(text) : write_out(text); }

void print_result(bool as_json, const std::function<std::string()>& json, const std::function<void()>& text) {
  const int descriptor = json_descriptor();
  const std::string object = as_json || descriptor >= 0 ? json() : "";
  if (descriptor >= 0) write_to(descriptor, visible_json(object));
  as_json ? print_json(object) : text();
}

void flush_output() {
  if (std::fflush(stdout) != 0) fail_output();
}

void print_note(std::string_view text) { print_message("note", "\033[33m", text); }

void print_error(std::string_view text) { print_message("error", "\033[1;31m", text); }

void print_status(std::string_view text) {
  hide_progress();
  const std::string line = visible_line(text) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::string bold(std::string_view text, Stream stream) {
  const std::string shown = visible(text);
  return coloured(stream) ? join_text(kBold, shown, kPlain) : shown;
}

}  // namespace headshare
