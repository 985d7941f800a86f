#include "headshare/cli/program.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "headshare/base/json/json_input.h"
#include "headshare/base/notice.h"
#include "headshare/base/options/nearest.h"
#include "headshare/cli/terminal/interrupt.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/cli/verbs/verbs.h"
#include "headshare/data/repair_utf8.h"
#include "headshare/host/explain_error.h"
#include "headshare/host/launch.h"
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
  bool shares = false;         // its work with other processes, where torchrun started it
};

// The verbs stand in the order of --help.
constexpr std::array kVerbs = {
    Verb{"compare", "trains every attention scheme on your text and prints one table of quality and cost", run_compare,
         /*computes=*/true, /*keeps_options=*/true},
    Verb{"cell", "trains one model of a planned comparison, on any machine that shares its directory", run_cell,
         /*computes=*/true, /*keeps_options=*/false, /*shares=*/true},
    Verb{"report", "makes the report of a comparison again, or one report of several", run_report},
    Verb{"train", "trains one language model on text, causal or masked", run_train, /*computes=*/true,
         /*keeps_options=*/true, /*shares=*/true},
    Verb{"finetune", "adapts an encoder to GLUE, SuperGLUE, SQuAD or your own table", run_finetune, /*computes=*/true,
         /*keeps_options=*/true, /*shares=*/true},
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

const Verb& find_verb(const std::string& name) {
  std::vector<std::string> known;
  for (const Verb& verb : kVerbs) {
    if (name == verb.name) return verb;
    known.emplace_back(verb.name);
  }
  throw UsageError(
      join_text("unknown verb ", brief_text(name), did_you_mean(name, known), "; `headshare --help` lists them"));
}

// libtorch's switch limits headshare's kernels, too: a machine with AVX-512 can then be measured as one without it.
void limit_instructions() {
  const char* const asked = std::getenv("ATEN_CPU_CAPABILITY");
  if (asked == nullptr || std::string_view(asked) != "avx2") return;
  const std::vector<std::string> known = kernels::tiles_targets();
  if (std::find(known.begin(), known.end(), "AVX2") != known.end()) kernels::force_tiles_target("AVX2");
}

// Refuses arguments that are not UTF-8, now and not after the training: options are kept in YAML and JSON, which are
// UTF-8.
void check_utf8(const Words& words) {
  for (const std::string& word : words) {
    const size_t valid = valid_utf8_prefix(word);
    if (valid == word.size()) continue;
    throw UsageError(join_text("the argument ", replace_invalid_utf8(word), " is not UTF-8 (byte ", valid,
                               "); rename the file, or give it a link with another name"));
  }
}

void refuse_other_processes(const Verb& verb) {
  const int64_t size = run_processes().size();
  if (size == 1 || verb.shares) return;
  throw UsageError(join_text("`headshare ", verb.name,
                             "` does not share its work among processes, and torchrun started ", size,
                             "; run it without torchrun"));
}

int run(Words words, const std::function<void()>& prepare) {
  if (words.empty()) words = {"--help"};
  check_same_verb(run_processes(), words[0]);
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
  refuse_other_processes(verb);
  if (verb.computes && prepare) prepare();
  limit_instructions();
  words.erase(words.begin());
  return verb.run(words);
}

// A file must not get the number of a closed standard stream: messages would land in it. The streams are opened the
// wrong way round, so that reading and writing them fail as they do when a stream is closed.
void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) == -1) ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

Conclusion run_program(Words words, const std::function<void()>& prepare) {
  try {
    const int code = run(std::move(words), prepare);
    flush_output();
    return {.code = code, .error = ""};
  } catch (const UsageError& error) {
    return {.code = kUsage, .error = error.what()};
  } catch (const ProcessLost& error) {
    return {.code = kFailure, .error = error.what(), .lost = true};
  } catch (const Interrupted& stopped) {
    return {.code = kInterrupted, .error = "", .note = stopped.what()};
  } catch (const OutputClosed&) {
    return {.code = kOutputClosed, .error = ""};
  } catch (...) {
    return {.code = kFailure, .error = explained(std::current_exception())};
  }
}

void prepare_process() {
  open_standard_streams();
  ignore_write_signals();
  set_notice_handler([](const std::string& sentence) { print_note(sentence); });
}

}  // namespace headshare
