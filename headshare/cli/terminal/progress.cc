#include "headshare/cli/terminal/progress.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/base/strings/visible.h"

namespace headshare {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr double kLeastSeconds = 5;
constexpr double kMostSeconds = 30;
constexpr double kTenth = 0.1 - 1e-9;

// The mutex guards the line on the screen; messages from other threads take it away first.
std::mutex screen_mutex;
ProgressLine* on_screen = nullptr;

// Leaves out whole parts at the end, because a number that is cut is another number. Two blanks stand between parts,
// and the first one behind the title stays, cut where it has to be.
std::string fitting(std::string text, size_t most) {
  while (text.size() > most) {
    const size_t end = text.rfind("  ");
    if (end == std::string::npos || text.rfind("  ", end - 1) == std::string::npos) break;
    text.resize(end);
  }
  return text.substr(0, most);
}

}  // namespace

ProgressLine::ProgressLine(std::string title, Output output)
    : title_(std::move(title)), output_(std::move(output)), started_(output_.now()), written_(started_) {
  if (output_.terminal) written_ -= kRedrawSeconds;
}

ProgressLine::~ProgressLine() {
  hide();
  const std::lock_guard lock(screen_mutex);
  if (on_screen == this) on_screen = nullptr;
}

bool ProgressLine::due(double fraction, double now) const {
  const double waited = now - written_;
  if (output_.terminal) return waited >= kRedrawSeconds;
  const bool tenth = fraction - written_fraction_ >= kTenth || fraction >= 1;
  return waited >= kMostSeconds || (tenth && waited >= kLeastSeconds);
}

std::string ProgressLine::line(double fraction, double now, std::string_view details) const {
  std::string text = title_;
  const double passed = now - started_;
  if (fraction > 0) {
    text += join_text("  ", static_cast<int>(std::min(fraction, 1.0) * 100), "%");
    const double since_first = fraction - first_fraction_;
    if (passed > 1 && since_first > 0 && fraction < 1) {
      text += "  " + format_duration(passed * (1 - fraction) / since_first) + " left";
    }
  }
  if (!details.empty()) text += join_text("  ", details);
  return visible_line(text);
}

void ProgressLine::update(double done, double total, std::string_view details) {
  const double now = output_.now();
  const double fraction = total > 0 ? done / total : 0;
  if (first_fraction_ < 0) {
    // Work resumed in the middle counts its tenths from there.
    first_fraction_ = fraction < 1 ? fraction : 0;
    written_fraction_ = first_fraction_;
  }
  if (!due(fraction, now)) return;
  std::string text = line(fraction, now, details);
  if (output_.terminal) {
    text = fitting(std::move(text), static_cast<size_t>(output_.width - 1));
    text = "\r" + text + "\033[K";
  } else {
    text += "\n";
  }
  const std::lock_guard lock(screen_mutex);
  std::fwrite(text.data(), 1, text.size(), output_.file);
  std::fflush(output_.file);
  written_ = now;
  written_fraction_ = fraction;
  shown_ = output_.terminal;
  if (shown_) on_screen = this;
}

void ProgressLine::hide() {
  const std::lock_guard lock(screen_mutex);
  if (!shown_) return;
  std::fputs("\r\033[K", output_.file);
  std::fflush(output_.file);
  shown_ = false;
}

void hide_progress() {
  ProgressLine* line = nullptr;
  {
    const std::lock_guard lock(screen_mutex);
    line = std::exchange(on_screen, nullptr);
  }
  if (line != nullptr) line->hide();
}

}  // namespace headshare
