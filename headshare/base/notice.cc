#include "headshare/base/notice.h"

#include <mutex>
#include <utility>

namespace headshare {
namespace {

struct State {
  std::mutex mutex;
  NoticeHandler handler;
};

State& state() {
  static State instance;
  return instance;
}

}  // namespace

NoticeHandler set_notice_handler(NoticeHandler handler) {
  const std::lock_guard lock(state().mutex);
  return std::exchange(state().handler, std::move(handler));
}

void notice(const std::string& sentence) {
  const std::lock_guard lock(state().mutex);
  if (state().handler) state().handler(sentence);
}

}  // namespace headshare
