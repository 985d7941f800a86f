#include "tests/fuzz/driver.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "headshare/base/error.h"

// These record which places of the program have run, where it was compiled with -fsanitize-coverage=trace-pc (the
// preset "fuzz"): an input that reaches a new one is kept and mutated further. The recorder is not instrumented itself.
namespace {
constexpr uintptr_t kPlaces = 1 << 20;
std::array<uint8_t, kPlaces> places_seen;
int64_t new_places = 0;
}  // namespace

extern "C" __attribute__((no_sanitize("address", "undefined"))) void __sanitizer_cov_trace_pc() {
  const auto place = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  uint8_t& seen = places_seen[(place ^ (place >> 20)) % kPlaces];
  if (seen == 0) ++new_places;
  seen = 1;
}

namespace headshare::fuzz {
namespace {

constexpr unsigned kMostSeconds = 20;  // for one input
constexpr size_t kMostKept = 4000;

struct Plan {
  int64_t runs = 0;  // mutations of each target; 0: by time
  double seconds = 0;
  uint64_t seed = 1;
  std::string only;    // a target
  std::string replay;  // a folder with one input
};

volatile uint64_t sink = 0;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Case read_case(const fs::path& folder) {
  Case made;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) made[entry.path().filename()] = read_file(entry.path());
  }
  return made;
}

std::vector<Case> seeds_of(const Target& target) {
  std::vector<Case> seeds = target.seeds;
  const fs::path corpus = fs::path(HEADSHARE_SOURCE_DIR) / "tests" / "fuzz" / "corpus" / target.name;
  std::vector<fs::path> folders;
  if (fs::exists(corpus)) std::copy(fs::directory_iterator(corpus), {}, std::back_inserter(folders));
  std::sort(folders.begin(), folders.end());
  for (const fs::path& folder : folders) seeds.push_back(read_case(folder));
  return seeds;
}

// Writes plainly: there are thousands of files a second, and nobody needs them after a power cut.
void write_plain(const fs::path& path, const std::string& content) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  HS_CHECK(file != nullptr, "cannot write ", path.string());
  std::fwrite(content.data(), 1, content.size(), file);
  std::fclose(file);
}

// A run has one target and the folder it reads.
class Run {
 public:
  Run(const Target& target, fs::path folder) : target_(target), folder_(std::move(folder)) {
    fs::create_directories(folder_);
  }

  // Returns false where the reader failed; the input then stays in the folder.
  bool passes(const Case& input) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    for (const auto& [name, content] : input) {
      write_plain(folder_ / name, target_.packed ? target_.packed(name, content) : content);
    }
    ::alarm(kMostSeconds);
    try {
      target_.read(folder_);
    } catch (const Error&) {
      ++refused;
    } catch (const std::exception& error) {
      std::printf("%s: neither read nor refused: %s\n", target_.name.c_str(), error.what());
      return false;
    }
    ::alarm(0);
    return true;
  }

  int64_t refused = 0;

 private:
  const Target& target_;
  fs::path folder_;
};

bool fuzz(const Target& target, const Plan& plan, const fs::path& folder) {
  Run run(target, folder);
  std::mt19937_64 random(plan.seed);
  std::vector<Case> kept = seeds_of(target);
  HS_CHECK(!kept.empty(), target.name, " has no seeds: put a folder into tests/fuzz/corpus/", target.name);
  for (const Case& seed : kept) {
    if (!run.passes(seed)) return false;
  }
  const int64_t refused_seeds = run.refused;
  const size_t seeds = kept.size();
  const double end = now() + plan.seconds;
  int64_t runs = 0;
  for (; plan.runs > 0 ? runs < plan.runs : now() < end; ++runs) {
    Case input = kept[random() % kept.size()];
    const Case& other = kept[random() % kept.size()];
    const auto file = std::next(input.begin(), static_cast<int64_t>(random() % input.size()));
    const auto twin = other.find(file->first);
    file->second = mutated(file->second, twin == other.end() ? "" : twin->second, random);
    new_places = 0;
    if (!run.passes(input)) return false;
    if (new_places > 0 && kept.size() < kMostKept) kept.push_back(std::move(input));
  }
  std::printf("%-22s %7ld inputs, %7ld refused, %zu seeds (%ld refused), %zu found\n", target.name.c_str(), runs,
              run.refused - refused_seeds, seeds, refused_seeds, kept.size() - seeds);
  std::fflush(stdout);
  return true;
}

Plan parse(int argc, char** argv) {
  Plan plan{.runs = 1000};
  for (int at = 1; at + 1 < argc; at += 2) {
    const std::string name = argv[at];
    const char* value = argv[at + 1];
    if (name == "--runs") plan.runs = std::atol(value);
    if (name == "--seconds")
      plan = {.runs = 0, .seconds = std::atof(value), .seed = plan.seed, .only = plan.only, .replay = {}};
    if (name == "--seed") plan.seed = std::strtoull(value, nullptr, 10);
    if (name == "--only") plan.only = value;
    if (name == "--replay") plan.replay = value;
  }
  return plan;
}

// Runs each of the targets for its share of the time; returns true when all went well.
bool run_all(const Plan& plan, const fs::path& work) {
  std::vector<Target> chosen = targets();
  if (!plan.only.empty()) std::erase_if(chosen, [&](const Target& one) { return one.name != plan.only; });
  HS_CHECK(!chosen.empty(), "no target is called ", plan.only);
  Plan share = plan;
  share.seconds /= static_cast<double>(chosen.size());
  for (const Target& target : chosen) {
    const fs::path folder = work / target.name;
    const bool well =
        plan.replay.empty() ? fuzz(target, share, folder) : Run(target, folder).passes(read_case(plan.replay));
    if (!well) return false;
    fs::remove_all(folder);
  }
  return true;
}

}  // namespace

void may_refuse(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error&) {
  }
}

void use(uint64_t value) { sink = sink + value; }

}  // namespace headshare::fuzz

// The call is: fuzz_NAME [--runs N | --seconds S] [--seed N] [--only TARGET [--replay FOLDER]]
int main(int argc, char** argv) {
  using namespace headshare;
  const fs::path work = fs::temp_directory_path() / ("headshare-fuzz-" + std::to_string(::getpid()));
  try {
    if (fuzz::run_all(fuzz::parse(argc, argv), work)) {
      fs::remove_all(work);
      return 0;
    }
  } catch (const Error& error) {
    std::printf("error: %s\n", error.what());
  }
  std::printf("the input is in %s\n", work.c_str());
  return 1;
}
