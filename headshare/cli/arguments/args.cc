#include "headshare/cli/arguments/args.h"

#include <algorithm>

#include "headshare/base/files/placeholder.h"
#include "headshare/base/json/json_input.h"
#include "headshare/base/options/canonical_name.h"
#include "headshare/base/options/nearest.h"
#include "headshare/base/strings/visible.h"
#include "headshare/cli/terminal/terminal.h"
#include "headshare/host/settings_file.h"

namespace headshare {
namespace {

constexpr const char* kConfig = "config";
constexpr const char* kHelp = "help";
constexpr const char* kFullHelp = "help-all";

// Turns "--Learning_Rate" into "learning-rate".
std::string plain_name(const std::string& flag) { return canonical_name(flag.substr(flag.starts_with("--") ? 2 : 1)); }

bool looks_like_flag(const std::string& word) { return word.size() > 2 && word.starts_with("--"); }

bool is_full_help(const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  return name == "--help-all" || name == "--help_all";
}

bool is_help(const std::string& word) { return word == "--help" || word == "-h" || is_full_help(word); }

}  // namespace

Arguments::Arguments(std::string verb, std::string summary) {
  page_.verb = std::move(verb);
  page_.summary = std::move(summary);
}

void Arguments::groups(OptionGroups groups) {
  for (OptionGroup& group : groups) this->group(std::move(group.heading), std::move(group.fields));
}

void Arguments::group(std::string heading, Fields fields) {
  for (const Field& one : fields) {
    std::vector<std::string> names = one.aliases;
    names.push_back(one.name);
    for (const std::string& name : names) {
      if (find(name) != nullptr || name == kConfig || name == kHelp || name == kFullHelp) {
        throw std::logic_error(page_.verb + " has two options called " + name);
      }
    }
  }
  page_.groups.push_back(option_group(std::move(heading), std::move(fields)));
}

void Arguments::required(std::string name, std::string help, std::string* target) {
  page_.positionals.push_back({std::move(name), std::move(help), target, /*required=*/true});
}

void Arguments::optional(std::string name, std::string help, std::string* target) {
  page_.positionals.push_back({std::move(name), std::move(help), target, /*required=*/false});
}

void Arguments::any_number(std::string name, std::string help, std::vector<std::string>* targets) {
  page_.positionals.push_back({std::move(name), std::move(help), nullptr, /*required=*/false, targets});
}

void Arguments::one_or_more(std::string name, std::string help, std::vector<std::string>* targets) {
  page_.positionals.push_back({std::move(name), std::move(help), nullptr, /*required=*/true, targets});
}

void Arguments::note(std::string paragraph) { page_.notes.push_back(std::move(paragraph)); }

void Arguments::common(std::vector<std::string> names) {
  for (const std::string& name : names) {
    if (find(name) == nullptr) throw std::logic_error(page_.verb + " has no option called " + name);
  }
  page_.common = std::move(names);
}

void Arguments::example(std::string command, std::string purpose) {
  page_.examples.push_back({std::move(command), std::move(purpose)});
}

void Arguments::refuse_flag(const std::string& name) const {
  std::vector<std::string> known = option_names(page_.groups);
  known.insert(known.end(), {kConfig, kHelp, kFullHelp});
  const bool negated = name.starts_with("no-");
  const std::string nearest = nearest_name(negated ? name.substr(3) : name, known);
  const std::string hint = nearest.empty() ? "" : join_text(" (did you mean --", negated ? "no-" : "", nearest, "?)");
  throw UsageError(join_text("unknown option --", shortened(name, 60), hint, "; `headshare ", page_.verb,
                             " --help-all` lists them"));
}

void Arguments::set_flag(Field& field, const std::string& text) {
  const bool again = flags_.contains(field.name) && field.value().is_array();
  std::string whole = text;
  if (again) {
    const std::string before = field_text(field.value(), field.name);
    if (!before.empty()) whole = before + "," + text;
  }
  try {
    refuse_empty(field, text);
    field.parse(whole);
  } catch (const Error& error) {
    throw UsageError(join_text("--", error.what()));  // the message begins with the name
  }
  given_[field.name] = whole;
  flags_.insert(field.name);
  asked_.insert(field.name);
}

void Arguments::refuse_idle(const std::vector<std::string>& names, const std::string& why) const {
  for (const std::string& name : names) {
    if (asked(name)) throw UsageError(join_text("--", name, " ", why, "; leave it out"));
  }
}

void Arguments::refuse_idle(const IdleOptions& options) const {
  for (const IdleOption& one : options) refuse_idle({one.name}, one.why);
}

void refuse_idle_sweep(const std::vector<std::string>& swept, const IdleOptions& idle) {
  for (const IdleOption& one : idle) {
    if (std::find(swept.begin(), swept.end(), one.name) == swept.end()) continue;
    throw UsageError(join_text("--sweep ", one.name, ": ", one.name, " ", one.why, "; leave it out"));
  }
}

// Reads the flag at words[at]; returns how many words it took.
size_t Arguments::parse_flag(const Words& words, size_t at) {
  const std::string& word = words[at];
  const size_t equals = word.find('=');
  const std::string name = plain_name(word.substr(0, equals));
  const bool has_value = equals != std::string::npos;
  Field* field = find(name);
  if (field == nullptr && name.starts_with("no-")) {
    field = find(name.substr(3));
    if (field != nullptr && field->is_switch) {
      if (has_value) throw UsageError(join_text("--", name, " takes no value"));
      set_flag(*field, "false");
      return 1;
    }
    if (field != nullptr)
      throw UsageError(join_text("--", name, " is not possible: --", field->name, " takes a value"));
  }
  if (field == nullptr && name != kConfig) refuse_flag(name);
  if (field != nullptr && field->is_switch && !has_value) {
    set_flag(*field, "true");
    return 1;
  }
  if (!has_value && (at + 1 == words.size() || (looks_like_flag(words[at + 1]) && words[at + 1] != "--"))) {
    throw UsageError(
        join_text("--", name, " needs a value", field == nullptr || field->range.empty() ? "" : ": " + field->range));
  }
  // --config was read before all flags.
  if (field != nullptr) set_flag(*field, has_value ? word.substr(equals + 1) : words[at + 1]);
  return has_value ? 1 : 2;
}

void Arguments::take_positional(const std::string& word) {
  unnamed_.push_back(word);
  std::vector<std::string>* rest = page_.positionals.empty() ? nullptr : page_.positionals.back().all;
  if (rest != nullptr && positionals_taken_ + 1 >= page_.positionals.size()) {
    if (word.empty()) throw UsageError(join_text(page_.positionals.back().name, " is empty"));
    rest->push_back(word);
    positionals_taken_ = page_.positionals.size();
    return;
  }
  if (positionals_taken_ == page_.positionals.size()) {
    const bool switch_value = word == "true" || word == "false" || word == "True" || word == "False";
    throw UsageError(join_text("unexpected argument ", brief_text(word), "; ",
                               switch_value ? "a switch is written --name, --no-name or --name=false"
                                            : "`headshare " + page_.verb + " --help` shows what it takes"));
  }
  const Positional& next = page_.positionals[positionals_taken_++];
  if (word.empty()) throw UsageError(join_text(next.name, " is empty: ", next.help));
  *next.target = word;
}

void Arguments::read_config(const std::string& path) {
  has_config_ = true;
  const SettingsFile file(path);
  const std::string writer = file.writer();
  if (!writer.empty() && writer != page_.verb) {
    throw UsageError(join_text(path, " holds the options of `headshare ", writer, "`, and this is `headshare ",
                               page_.verb, "`; use: headshare ", writer, " --config ", path));
  }
  for (const GivenOption& one : file.set(page_.groups)) {
    given_[one.name] = one.text;
    if (writer.empty()) asked_.insert(one.name);
  }
}

// Takes a call for help out of the words.
std::optional<Arguments::Help> Arguments::take_help(Words* words) {
  std::optional<Help> help;
  Words others;
  for (size_t i = 0; i < words->size(); ++i) {
    const std::string& word = (*words)[i];
    if (word == "--") {
      others.insert(others.end(), words->begin() + static_cast<ptrdiff_t>(i), words->end());
      break;
    }
    if (!is_help(word)) {
      others.push_back(word);
      continue;
    }
    if (!help) help.emplace();
    if (!is_full_help(word)) continue;
    help->full = true;
    if (const size_t equals = word.find('='); equals != std::string::npos) {
      help->group = word.substr(equals + 1);
    } else if (i + 1 < words->size() && !(*words)[i + 1].starts_with('-')) {
      help->group = (*words)[++i];
    }
  }
  *words = std::move(others);
  return help;
}

void Arguments::print_help(const Help& help) const {
  const int width = terminal_width(Stream::kOut);
  print_styled(!help.group.empty() ? group_help_text(page_, help.group, width)
               : help.full         ? full_help_text(page_, width)
                                   : help_text(page_, width));
}

bool Arguments::parse(const Words& words) {
  Words others = words;
  if (const std::optional<Help> help = take_help(&others)) {
    print_help(*help);
    return false;
  }
  read_words(words);
  return true;
}

void Arguments::read(const Words& words) {
  Words others = words;
  help_ = take_help(&others);
  if (!help_) return read_words(words);
  try {
    read_words(others);
  } catch (const Error&) {
    // Help comes first, so a wrong option is no error here.
  }
}

bool Arguments::repeat(const Arguments& typed) {
  if (typed.help_) {
    print_help(*typed.help_);
    return false;
  }
  for (const auto& [name, text] : typed.given_) find(name)->parse(text);
  given_ = typed.given_;
  flags_ = typed.flags_;
  asked_ = typed.asked_;
  has_config_ = typed.has_config_;
  for (const std::string& word : typed.unnamed_) take_positional(word);
  return true;
}

void Arguments::read_words(const Words& words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  std::string config;
  for (auto word = words.begin(); word != end; ++word) {
    const bool apart = *word == "--config";
    if (!apart && !word->starts_with("--config=")) continue;
    if (!config.empty()) throw UsageError("--config was given twice: put everything into one file");
    if (!apart) config = word->substr(std::string_view("--config=").size());
    if (apart && word + 1 != end) config = *(word + 1);
    if (config.empty()) throw UsageError("--config needs a YAML file");
  }
  if (!config.empty()) read_config(config);
  for (size_t at = 0; at < words.size();) {
    const std::string& word = words[at];
    if (word == "--") {
      for (++at; at < words.size(); ++at) take_positional(words[at]);
    } else if (word.size() > 1 && word[0] == '-') {
      if (!looks_like_flag(word)) refuse_flag(plain_name(word));
      at += parse_flag(words, at);
    } else {
      take_positional(word);
      ++at;
    }
  }
  if (positionals_taken_ < page_.positionals.size() && page_.positionals[positionals_taken_].required) {
    const Positional& missing = page_.positionals[positionals_taken_];
    throw UsageError(join_text(missing.name, " is missing: ", missing.help));
  }
}

}  // namespace headshare
