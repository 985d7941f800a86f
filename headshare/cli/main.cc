// The program: finds the verb, and turns whatever goes wrong into one line and an exit code.
#include <c10/util/Exception.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/base/file.h"
#include "headshare/base/json_input.h"
#include "headshare/base/nearest.h"
#include "headshare/base/notice.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/data/repair_utf8.h"
#include "headshare/kernels/tiles.h"
#include "headshare/text/unicode/utf8.h"

namespace headshare {
namespace {

struct Verb {
  const char* name;
  const char* summary;
  int (*run)(const Words& words);
  bool computes = false;       // with all cores
  bool keeps_options = false;  // in a directory
};

// In the order of --help.
constexpr std::array kVerbs = {
    Verb{"compare", "trains every attention scheme on your text and prints one table of quality and cost", run_compare,
         /*computes=*/true, /*keeps_options=*/true},
    Verb{"report", "makes the report of a comparison again, or one report of several", run_report},
    Verb{"train", "trains one language model on text, causal or masked", run_train, /*computes=*/true,
         /*keeps_options=*/true},
    Verb{"finetune", "adapts an encoder to GLUE, SuperGLUE, SQuAD or your own table", run_finetune, /*computes=*/true,
         /*keeps_options=*/true},
    Verb{"predict", "labels new rows with a model that finetune made", run_predict, /*computes=*/true},
    Verb{"evaluate", "scores a model on text: perplexity, bits per byte, pseudo-perplexity", run_evaluate,
         /*computes=*/true},
    Verb{"score", "scores predictions of any program: SQuAD, GLUE, SuperGLUE, translations", run_score},
    Verb{"generate", "continues text", run_generate, /*computes=*/true},
    Verb{"translate", "translates standard input line by line", run_translate, /*computes=*/true},
    Verb{"fill", "what may stand in the masked places of a text", run_fill, /*computes=*/true},
    Verb{"convert", "reads Hugging Face models, writes encoders back, makes trained heads share", run_convert},
    Verb{"analyze", "how alike a model's heads are, and what making them share would cost and save", run_analyze,
         /*computes=*/true},
    Verb{"cost", "parameters and cache of every attention scheme, without training", run_cost},
    Verb{"bench", "how fast this machine computes attention, against libtorch in the same process", run_bench,
         /*computes=*/true},
    Verb{"tokenize", "what a tokenizer makes of each line of a text", run_tokenize},
    Verb{"info", "what is in a model; what this machine supports; which kernel runs and why", run_info},
};

std::string overview() {
  constexpr int kNameWidth = 12;
  constexpr int kIndent = 2;
  const int width = terminal_width(Stream::kOut);
  std::string text = wrap(
      "headshare trains transformers whose attention heads share projections, and compares what that costs in quality "
      "with what it saves in parameters, cache, memory and time.",
      width, 0);
  text += "\n\nUsage: headshare VERB [options]\n\n";
  for (const Verb& verb : kVerbs) {
    std::string name = verb.name;
    name.resize(kNameWidth, ' ');
    text +=
        std::string(kIndent, ' ') + bold(name, Stream::kOut) + wrap(verb.summary, width, kIndent + kNameWidth) + "\n";
  }
  return text + "\n" +
         wrap(
             "`headshare VERB --help` shows a verb's common options, `headshare VERB --help-all` all of them; "
             "`headshare --version` the version.",
             width, 0) +
         "\n";
}

// Verbs that the program calls itself; --help does not list them.
constexpr std::array kInnerVerbs = {Verb{"train-cell", "one cell of a comparison", run_train_cell, true}};

const Verb& find_verb(const std::string& name) {
  for (const Verb& verb : kInnerVerbs) {
    if (name == verb.name) return verb;
  }
  std::vector<std::string> known;
  for (const Verb& verb : kVerbs) {
    if (name == verb.name) return verb;
    known.emplace_back(verb.name);
  }
  throw UsageError(
      join_text("unknown verb ", brief_text(name), did_you_mean(name, known), "; `headshare --help` lists them"));
}

// Threads that wait for each other spin before they sleep: libgomp's default of 300,000 turns (milliseconds)
// makes training on two cores some 30 times slower as soon as another process wants one of them. 3,000 turns
// cost nothing when the machine is idle (docs/design/012-waiting-threads.md). libgomp reads the environment
// when it is loaded, so the program starts once more; who sets either variable decides.
void wait_briefly(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  ::setenv("GOMP_SPINCOUNT", "3000", /*overwrite=*/0);
  ::execv("/proc/self/exe", argv);  // comes back only where there is no /proc
}

// libtorch's switch limits headshare's kernels, too: a machine with AVX-512 can then be measured as one without it.
void limit_instructions() {
  const char* const asked = std::getenv("ATEN_CPU_CAPABILITY");
  if (asked == nullptr || std::string_view(asked) != "avx2") return;
  const std::vector<std::string> known = kernels::tiles_targets();
  if (std::find(known.begin(), known.end(), "AVX2") != known.end()) kernels::force_tiles_target("AVX2");
}

// Options are kept in YAML and JSON, which are UTF-8: refused now and not after the training.
void check_utf8(const Words& words) {
  for (const std::string& word : words) {
    const size_t valid = valid_utf8_prefix(word);
    if (valid == word.size()) continue;
    throw UsageError(join_text("the argument ", replace_invalid_utf8(word), " is not UTF-8 (byte ", valid,
                               "); rename the file, or give it a link with another name"));
  }
}

int run(Words words, char** argv) {
  if (words.empty()) words = {"--help"};
  if (words[0] == "help" && words.size() > 1) words = {words[1], "--help"};
  if (words[0] == "--help" || words[0] == "--help-all" || words[0] == "-h" || words[0] == "help") {
    print_styled(overview());
    return kOk;
  }
  if (words[0] == "--version" || words[0] == "-V") {
    print("headshare " HEADSHARE_VERSION "\n");
    return kOk;
  }
  const Verb& verb = find_verb(words[0]);
  if (verb.keeps_options) check_utf8(words);
  if (verb.computes) wait_briefly(argv);
  limit_instructions();
  words.erase(words.begin());
  return verb.run(words);
}

// libtorch's messages go on with source lines and a stack.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

int explain(const c10::Error& error) {
  const std::string text = first_line(error.what_without_backtrace());
  const bool memory =
      text.find("allocate memory") != std::string::npos || text.find("out of memory") != std::string::npos;
  print_error(memory ? "not enough memory: " + text : "libtorch: " + text);
  return kFailure;
}

// A file must not get the number of a closed standard stream: messages would land in it. The streams are opened the
// wrong way round, so that reading and writing them fail as they do when a stream is closed.
void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) == -1) ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int run_and_explain(const Words& words, char** argv) {
  try {
    const int code = run(words, argv);
    flush_output();
    return code;
  } catch (const UsageError& error) {
    print_error(error.what());
    return kUsage;
  } catch (const Error& error) {
    print_error(error.what());
  } catch (const Interrupted& stopped) {
    print_note(stopped.what());
    return kInterrupted;
  } catch (const OutputClosed&) {
    return kOutputClosed;
  } catch (const std::bad_alloc&) {
    print_error("not enough memory");
  } catch (const c10::Error& error) {
    return explain(error);
  } catch (const fs::filesystem_error& error) {
    print_error(join_text("cannot access ", error.path1().string(), ": ", error.code().message()));
  } catch (const std::exception& error) {
    print_error(join_text("a defect in headshare: ", first_line(error.what())));
  }
  return kFailure;
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
  headshare::open_standard_streams();
  headshare::ignore_write_signals();
  headshare::set_notice_handler([](const std::string& sentence) { headshare::print_note(sentence); });
  headshare::leave(headshare::run_and_explain(headshare::Words(argv + (argc > 0 ? 1 : 0), argv + argc), argv));
}
