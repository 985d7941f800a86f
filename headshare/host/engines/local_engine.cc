// The engine local:N runs N cells at a time in processes of this machine.
#include <poll.h>

#include <utility>

#include "headshare/base/error.h"
#include "headshare/base/strings/number.h"
#include "headshare/host/child_process.h"
#include "headshare/host/device_places.h"
#include "headshare/host/engine.h"

namespace headshare {
namespace {

constexpr size_t kMostProcesses = 1024;
constexpr std::chrono::duration<double> kPause(0.2);

class LocalEngine : public Engine {
 public:
  LocalEngine(size_t at_once, EngineCall call) : at_once_(at_once), call_(std::move(call)), places_(call_.devices) {}
  ~LocalEngine() override { stop(); }

  size_t room() const override { return at_once_ - running_.size(); }

  void start(const std::vector<size_t>& cells) override {
    for (const size_t cell : cells) {
      running_.push_back(
          {cell, std::make_unique<ChildProcess>(call_.program, words(cell),
                                                [this, cell](const std::string& note) { call_.on_note(cell, note); })});
    }
  }

  std::vector<EndedCell> poll(std::chrono::duration<double> most) override {
    std::vector<pollfd> said;
    for (const Running& one : running_) said.push_back({one.process->said_here(), POLLIN, 0});
    ::poll(said.data(), said.size(), static_cast<int>(most.count() * 1000));
    std::vector<EndedCell> ended;
    std::erase_if(running_, [&](const Running& one) {
      const auto end = one.process->look();
      if (!end) return false;
      places_.give_back(one.cell);
      ended.push_back({.cell = one.cell, .code = end->code, .how = end->how});
      return true;
    });
    return ended;
  }

  std::chrono::duration<double> pause() const override { return kPause; }

  void stop() override {
    for (const Running& one : running_) one.process->ask_to_stop();
    for (const Running& one : running_) one.process->wait();
    running_.clear();
  }

 private:
  struct Running {
    size_t cell;
    std::unique_ptr<ChildProcess> process;
  };

  std::vector<std::string> words(size_t cell) {
    std::vector<std::string> made = cell_words(call_, cell);
    const std::string device = places_.take(cell);
    if (!device.empty()) made.insert(made.end(), {"--device", device});
    return made;
  }

  size_t at_once_;
  EngineCall call_;
  DevicePlaces places_;
  std::vector<Running> running_;
};

size_t processes(const std::string& options) {
  if (options.empty()) return 1;
  const std::optional<size_t> count = number_in<size_t>(options);
  HS_CHECK(count && *count >= 1 && *count <= kMostProcesses, "--workers local:", options,
           ": so many cells at a time are wanted, from 1 to ", kMostProcesses);
  return *count;
}

}  // namespace

EngineRecord local_engine() {
  return {.name = "local",
          .help = "local:N runs N cells at a time on this machine",
          .shares_cores = true,
          .at_once = processes,
          .make = [](const std::string& options, const EngineCall& call) -> std::unique_ptr<Engine> {
            return std::make_unique<LocalEngine>(processes(options), call);
          }};
}

}  // namespace headshare
