#include "headshare/cli/compare/planned_text.h"

#include "headshare/base/error.h"
#include "headshare/base/strings/shell_word.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/report/statistics/wording.h"

namespace headshare {
namespace {

// Returns runs of numbers as `seq` could make them: "0 to 7, 9, 12 to 14".
std::string ranges_text(const std::vector<size_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    text += join_text(text.empty() ? "" : ", ", numbers[i]);
    if (end > i) text += join_text(" to ", numbers[end]);
    i = end + 1;
  }
  return text;
}

}  // namespace

std::string planned_text(const Planned& planned, const fs::path& out) {
  const int width = terminal_width(Stream::kOut);
  const std::string home = shell_word(whole_path(planned.home.string()));
  const std::string whole = shell_word(whole_path(out.string()));
  const bool stage = planned.home != out;
  const std::string first =
      join_text(plural(planned.cells, "model"), " planned, ", planned.unfinished.size(),
                " to be trained. Run each of them on any machine that shares the directory; INDEX is ",
                ranges_text(planned.unfinished), ":");
  const std::string then = stage ? "The encoders come first. When they are trained, plan what is fine-tuned:"
                                 : "When they are trained, gather what they found (or train what is left here):";
  const std::string next =
      stage ? "headshare compare --resume --plan " + whole : "headshare compare --resume --out " + whole;
  return wrap(first, width, 0) + "\n\n  headshare cell " + home + " INDEX\n\n" + wrap(then, width, 0) + "\n\n  " +
         next + "\n";
}

nlohmann::json planned_json(const Planned& planned) {
  return {{"directory", whole_path(planned.home.string())},
          {"plan_id", planned.id},
          {"cells", planned.cells},
          {"unfinished", planned.unfinished}};
}

}  // namespace headshare
