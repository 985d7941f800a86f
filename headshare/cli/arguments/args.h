// A verb reads what it is called with here: flags and a YAML file, both against the field lists of its options.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "headshare/base/options/idle_option.h"
#include "headshare/host/option_groups.h"
#include "headshare/host/usage_error.h"

namespace headshare {

using Words = std::vector<std::string>;  // the command line behind the verb

// This is an argument without a name.
struct Positional {
  std::string name;  // "MODEL"
  std::string help;
  std::string* target = nullptr;
  bool required = false;
  std::vector<std::string>* all = nullptr;  // in place of target: takes every argument from here on
};

// This is a command line to start from.
struct Example {
  std::string command;  // as typed
  std::string purpose;  // what it does
};

// A page holds everything that --help and --help-all show.
struct HelpPage {
  std::string verb;
  std::string summary;
  std::vector<Positional> positionals;
  OptionGroups groups;
  std::vector<std::string> common;  // names of the options that --help shows; empty: all
  std::vector<Example> examples;
  std::vector<std::string> notes;  // paragraphs below all options
};

// These return the text of --help (the common options and the examples, on one screen), of --help-all (every option
// with its range and other names), and of --help-all GROUP (the options of the group whose heading is or begins with
// `group`). The last throws UsageError where there is no such group.
std::string help_text(const HelpPage& page, int width);
std::string full_help_text(const HelpPage& page, int width);
std::string group_help_text(const HelpPage& page, const std::string& group, int width);

// A verb reads its command line in this way:
//   Arguments arguments("cost", "what every scheme takes");
//   arguments.group("Model", fields(options.model));
//   if (!arguments.parse(words)) return kOk;
// Values come from --config FILE.yaml first, then from the flags in order; the last one wins, but a
// list flag given again adds to the list.
class Arguments {
 public:
  Arguments(std::string verb, std::string summary);

  // These throw std::logic_error when a name or alias is taken already.
  void group(std::string heading, Fields fields);
  void groups(OptionGroups groups);
  void required(std::string name, std::string help, std::string* target);
  void optional(std::string name, std::string help, std::string* target);
  void one_or_more(std::string name, std::string help, std::vector<std::string>* targets);  // the last to be named
  void any_number(std::string name, std::string help, std::vector<std::string>* targets);   // as above, or none
  void note(std::string paragraph);
  // Names the options that --help shows, in this order. Throws std::logic_error for one that is in no group.
  void common(std::vector<std::string> names);
  void example(std::string command, std::string purpose);

  // Returns false when --help, --help-all or --help-all GROUP was asked for; it is on standard output then. Throws
  // UsageError.
  bool parse(const Words& words);

  // These parse options that others depend on: the options are read first, and the rest of the command line is then
  // repeated on top of what follows from them.
  //   typed.read(words);
  //   if (!arguments.repeat(typed)) return kOk;
  // Where `words` ask for help, read() takes from them what can be understood: what help shows as defaults may depend
  // on it. repeat() takes over what `typed`, which has the same options, was called with, or prints the help that it
  // was called for and answers false.
  void read(const Words& words);
  bool repeat(const Arguments& typed);

  bool asks_for_help() const { return help_.has_value(); }
  // Tells whether --config was given.
  bool configured() const { return has_config_; }

  // Tells whether a flag or the YAML file set this option.
  bool given(const std::string& name) const { return given_.contains(name); }

  // Tells whether the user asked for this option: by a flag, or by a YAML file that no verb of ours wrote (those have
  // every option).
  bool asked(const std::string& name) const { return asked_.contains(name); }

  // Throws UsageError for the first of these options that was asked for: "--NAME " + `why` + "; leave it out".
  void refuse_idle(const std::vector<std::string>& names, const std::string& why) const;
  void refuse_idle(const IdleOptions& options) const;

  // Returns every option with its present value.
  nlohmann::json values() const { return to_json(page_.groups); }

  const HelpPage& page() const { return page_; }

 private:
  // This is a call for help.
  struct Help {
    bool full = false;
    std::string group;  // of --help-all GROUP; "": all
  };

  static std::optional<Help> take_help(Words* words);
  void print_help(const Help& help) const;
  void read_words(const Words& words);
  Field* find(const std::string& name) { return find_option(page_.groups, name); }
  size_t parse_flag(const Words& words, size_t at);
  void set_flag(Field& field, const std::string& text);
  void read_config(const std::string& path);
  void take_positional(const std::string& word);
  [[noreturn]] void refuse_flag(const std::string& name) const;

  HelpPage page_;
  std::optional<Help> help_;
  bool has_config_ = false;
  std::map<std::string, std::string> given_;  // names of fields, and the text that the last flag or the file gave them
  std::set<std::string> flags_;               // the names that flags gave
  std::set<std::string> asked_;               // see asked()
  size_t positionals_taken_ = 0;
  Words unnamed_;  // the words without a name
};

// Throws UsageError for the first swept option that is idle: all its values give the same model.
void refuse_idle_sweep(const std::vector<std::string>& swept, const IdleOptions& idle);

}  // namespace headshare
