// The program as a function: a process that torchrun started runs a verb together with the others of its group.
#include <string>

#include "headshare/base/notice.h"
#include "headshare/cli/program.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/host/launch.h"

extern "C" {

// This is what python/headshare/_group.py reads. The texts live until the next call.
struct headshare_conclusion {
  int code;
  const char* error;
  const char* note;
  int lost;
};

// Runs a verb in the process group of that name and prints what it says, but not how it ended.
headshare_conclusion headshare_run(const char* const* words, int count, const char* group);

__attribute__((used)) headshare_conclusion headshare_run(const char* const* words, int count, const char* group) {
  static headshare::Conclusion conclusion;
  headshare::prepare_process();
  headshare::join_group(group);
  if (!headshare::leads(headshare::run_processes())) headshare::set_notice_handler({});  // process 0 speaks for all
  conclusion = headshare::run_program(headshare::Words(words, words + count));
  return {conclusion.code, conclusion.error.c_str(), conclusion.note.c_str(), conclusion.lost ? 1 : 0};
}

// Prints a sentence as the program does: "error" or "note".
void headshare_say(const char* kind, const char* sentence);

__attribute__((used)) void headshare_say(const char* kind, const char* sentence) {
  std::string(kind) == "error" ? headshare::print_error(sentence) : headshare::print_note(sentence);
}

}  // extern "C"
