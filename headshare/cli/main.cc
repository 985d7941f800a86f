// The program's process: how it waits, and how it ends.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "headshare/cli/program.h"
#include "headshare/cli/terminal/terminal.h"

namespace headshare {
namespace {

// Starts the program again with less spinning. Threads that wait for each other spin before they sleep: libgomp's
// default of 300,000 turns (milliseconds) makes training on two cores some 30 times slower as soon as another process
// wants one of them. 3,000 turns cost nothing when the machine is idle (docs/design/012-waiting-threads.md). libgomp
// reads the environment when it is loaded, so the program starts once more; who sets either variable decides.
void wait_briefly(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  ::setenv("GOMP_SPINCOUNT", "3000", /*overwrite=*/0);
  ::execv("/proc/self/exe", argv);  // comes back only where there is no /proc
}

int print_conclusion(const Conclusion& conclusion) {
  if (!conclusion.error.empty()) print_error(conclusion.error);
  if (!conclusion.note.empty()) print_note(conclusion.note);
  return conclusion.code;
}

// Ends the program without destructors of static objects: libtorch would deregister its operators one by one, which
// takes a third of a short call. The sanitizers report what they found when a program ends the usual way.
[[noreturn]] void leave(int code) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  std::exit(code);
#else
  std::fflush(nullptr);
  std::_Exit(code);
#endif
}

}  // namespace
}  // namespace headshare

int main(int argc, char** argv) {
  headshare::prepare_process();
  const headshare::Words words(argv + (argc > 0 ? 1 : 0), argv + argc);
  headshare::leave(
      headshare::print_conclusion(headshare::run_program(words, [argv] { headshare::wait_briefly(argv); })));
}
