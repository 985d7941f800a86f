// What a verb is called with: flags and a YAML file, both read against the field lists of its options.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "headshare/base/damaged_file.h"
#include "headshare/base/error.h"
#include "headshare/base/field.h"
#include "headshare/base/file.h"

namespace headshare {

// A mistake in how the program was called: exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

// Runs `check` (such as resolving options); its Errors are mistakes of the call, but for damaged files.
template <class Check>
auto as_usage(const Check& check) {
  try {
    return check();
  } catch (const UsageError&) {
    throw;
  } catch (const DamagedFile&) {
    throw;
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

using Words = std::vector<std::string>;  // the command line behind the verb

// Options under one heading of --help.
struct OptionGroup {
  std::string heading;  // "Model": also the name of a group in YAML, "model:"
  Fields fields;
  std::vector<nlohmann::json> defaults;  // of each field
};

// An argument without a name.
struct Positional {
  std::string name;  // "MODEL"
  std::string help;
  std::string* target = nullptr;
  bool required = false;
  std::vector<std::string>* all = nullptr;  // in place of target: takes every argument from here on
};

// A command line to start from.
struct Example {
  std::string command;  // as typed
  std::string purpose;  // what it does
};

// Everything --help and --help-all show.
struct HelpPage {
  std::string verb;
  std::string summary;
  std::vector<Positional> positionals;
  std::vector<OptionGroup> groups;
  std::vector<std::string> common;  // names of the options that --help shows; empty: all
  std::vector<Example> examples;
  std::vector<std::string> notes;  // paragraphs below all options
};

// --help: the common options and the examples, on one screen. --help-all: every option with its range and other names.
// --help-all GROUP: those of the group of which `group` is the heading or its beginning. Throws UsageError for no
// group.
std::string help_text(const HelpPage& page, int width);
std::string full_help_text(const HelpPage& page, int width);
std::string group_help_text(const HelpPage& page, const std::string& group, int width);

// A heading, or what stands for one, as YAML names groups: "How to train" -> "how-to-train".
std::string group_name(std::string heading);

//   Arguments arguments("cost", "what every scheme takes");
//   arguments.group("Model", fields(options.model));
//   if (!arguments.parse(words)) return kOk;
// Values come from --config FILE.yaml first, then from the flags in order; the last one wins, but a
// list flag given again adds to the list.
class Arguments {
 public:
  Arguments(std::string verb, std::string summary);

  // Throws std::logic_error when a name or alias is taken already.
  void group(std::string heading, Fields fields);
  void required(std::string name, std::string help, std::string* target);
  void optional(std::string name, std::string help, std::string* target);
  void one_or_more(std::string name, std::string help, std::vector<std::string>* targets);  // the last to be named
  void any_number(std::string name, std::string help, std::vector<std::string>* targets);   // likewise, also none
  void note(std::string paragraph);
  // The options that --help shows, in this order. Throws std::logic_error for one that is in no group.
  void common(std::vector<std::string> names);
  void example(std::string command, std::string purpose);

  // False when --help, --help-all or --help-all GROUP was asked for; it is on standard output then. Throws UsageError.
  bool parse(const Words& words);

  // Where `words` ask for help, takes from them what can be understood and answers true: what --help shows as defaults
  // may depend on another option.
  bool parse_for_help(const Words& words);

  // Whether a flag or the YAML file set this option.
  bool given(const std::string& name) const { return given_.contains(name); }

  // Whether the user asked for this option: a flag, or a YAML file that no verb of ours wrote (those have every
  // option).
  bool asked(const std::string& name) const { return asked_.contains(name); }

  // Throws UsageError for the first of these options that was asked for: "--NAME " + `why` + "; leave it out".
  void refuse_idle(const std::vector<std::string>& names, const std::string& why) const;

  // Throws UsageError for one of these options that was given an empty value: it would do nothing.
  void refuse_empty(const std::vector<std::string>& names);

  // The options that no YAML file set, in the order of --help-all.
  std::vector<std::string> not_configured() const;

  // Every option with its present value, as YAML with comments that --config reads back.
  void write_resolved(const fs::path& path) const;

  // The same as one JSON object.
  nlohmann::json values() const;

  const HelpPage& page() const { return page_; }

 private:
  struct Flag {
    std::string name;
    std::string value;
    bool has_value = false;
  };

  Field* find(const std::string& name);
  size_t parse_flag(const Words& words, size_t at);
  void set_flag(Field& field, const std::string& text);
  void read_config(const std::string& path);
  void take_positional(const std::string& word);
  [[noreturn]] void refuse_flag(const std::string& name) const;
  std::vector<std::string> known_names() const;

  HelpPage page_;
  std::set<std::string> given_;       // names of fields
  std::set<std::string> flags_;       // those given as flags
  std::set<std::string> configured_;  // those that the YAML file set
  std::set<std::string> asked_;       // see asked()
  size_t positionals_taken_ = 0;
};

}  // namespace headshare
