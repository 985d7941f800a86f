#include "headshare/train/processes.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <numeric>
#include <optional>

namespace headshare {
namespace {

// This is what process 0 tells the processes that wait for it.
enum class News { kWorking, kDone, kInterrupted, kFailed };

News share_news(Reducer& processes, News news) {
  return static_cast<News>(number_of(processes, static_cast<double>(news)));
}

// Does `work` with a beat that calls `tell` where enough time has gone by.
void work_with_beat(const std::function<void(const Beat&)>& work, const std::function<void()>& tell,
                    std::chrono::seconds between_beats) {
  auto last = std::chrono::steady_clock::now();
  work([&] {
    const auto now = std::chrono::steady_clock::now();
    if (now - last < between_beats) return;
    last = now;
    tell();
  });
}

// Returns what ended the work; nothing where it was done.
std::exception_ptr do_work(Reducer& processes, const std::function<void(const Beat&)>& work) {
  try {
    work_with_beat(
        work, [&] { share_news(processes, News::kWorking); }, kBetweenBeats);
    return nullptr;
  } catch (const ProcessLost&) {
    throw;  // nobody can be told
  } catch (...) {
    return std::current_exception();
  }
}

// Tells the others why the work ended, and throws it.
[[noreturn]] void share_failure(Reducer& processes, const std::exception_ptr& reason) {
  try {
    std::rethrow_exception(reason);
  } catch (const Interrupted& stopped) {
    share_news(processes, News::kInterrupted);
    text_of(processes, stopped.what());
    throw;
  } catch (const std::exception& failure) {
    share_news(processes, News::kFailed);
    text_of(processes, failure.what());
    throw;
  }
}

void await_work(Reducer& processes) {
  News news = News::kWorking;
  while (news == News::kWorking) news = share_news(processes, news);
  if (news == News::kDone) return;
  const std::string sentence = text_of(processes, "");
  if (news == News::kInterrupted) throw Interrupted(sentence);
  throw Error(sentence);
}

std::string as_lines(const Facts& facts) {
  std::string text;
  for (const auto& [name, value] : facts) text += name + "\n" + value + "\n";
  return text;
}

// Returns the sentence about the first fact of `here` that process 0 lacks or has with another value; nothing where all
// are alike.
std::optional<std::string> first_difference(const Facts& here, const std::string& theirs, int64_t rank,
                                            const std::string& place) {
  if (as_lines(here) == theirs) return std::nullopt;
  const std::string who = join_text("process ", rank, " (", place, ")");
  size_t begin = 0;
  const auto next = [&] {
    const size_t end = std::min(theirs.find('\n', begin), theirs.size());
    const std::string line = theirs.substr(begin, end - begin);
    begin = std::min(end + 1, theirs.size());
    return line;
  };
  for (const auto& [name, value] : here) {
    const std::string their_name = next();
    const std::string their_value = next();
    if (name != their_name) return join_text(who, " has ", name, " where process 0 has ", their_name);
    if (value != their_value) return join_text(who, " has ", name, " ", value, " and process 0 ", their_value);
  }
  return who + " lacks what process 0 has: " + next();
}

}  // namespace

bool any_process(Reducer& processes, bool here) {
  std::array<double, 1> yes = {here ? 1.0 : 0.0};
  processes.sum(yes);
  return yes[0] > 0;
}

double number_of(Reducer& processes, double here, int64_t from) {
  std::array<double, 1> number = {processes.rank() == from ? here : 0};
  processes.sum(number);
  return number[0];
}

std::string text_of(Reducer& processes, const std::string& text, int64_t from) {
  if (processes.size() == 1) return text;
  const auto size = static_cast<int64_t>(number_of(processes, static_cast<double>(text.size()), from));
  if (size == 0) return "";
  const Tensor bytes = at::empty({size}, at::kByte);
  auto* data = bytes.mutable_data_ptr<uint8_t>();
  if (processes.rank() == from) std::copy(text.begin(), text.end(), data);
  processes.broadcast(bytes, from);
  return {data, data + bytes.numel()};
}

void on_process_0(Reducer& processes, const std::function<void(const Beat& beat)>& work) {
  if (processes.size() == 1) return work([] {});
  if (!leads(processes)) return await_work(processes);
  if (const std::exception_ptr reason = do_work(processes, work)) share_failure(processes, reason);
  share_news(processes, News::kDone);
}

void in_all_processes(Reducer& processes, const std::function<void(const Beat& beat)>& work,
                      std::chrono::seconds between_beats) {
  if (processes.size() == 1) return work([] {});
  const auto all_done = [&](bool here) { return !any_process(processes, !here); };
  work_with_beat(
      work, [&] { all_done(false); }, between_beats);
  while (!all_done(true)) {
  }
}

void check_alike(Reducer& processes, const Facts& facts, const std::string& place) {
  if (processes.size() == 1) return;
  const std::string theirs = text_of(processes, as_lines(facts));
  const std::optional<std::string> here = first_difference(facts, theirs, processes.rank(), place);
  std::vector<double> differs(static_cast<size_t>(processes.size()));
  differs[static_cast<size_t>(processes.rank())] = here ? 1 : 0;
  processes.sum(differs);
  const auto first = std::find(differs.begin(), differs.end(), 1);
  if (first == differs.end()) return;
  const std::string sentence = text_of(processes, here.value_or(""), first - differs.begin());
  throw Error(sentence + "; all processes of a run need the same program, options and data: start them alike");
}

std::vector<int64_t> deal_by_size(const std::vector<int64_t>& sizes, int64_t processes) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return sizes[a] > sizes[b]; });
  std::vector<int64_t> load(static_cast<size_t>(processes));
  std::vector<int64_t> owners(sizes.size());
  for (const size_t i : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += sizes[i];
    owners[i] = least - load.begin();
  }
  return owners;
}

}  // namespace headshare
