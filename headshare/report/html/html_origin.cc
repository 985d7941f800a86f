#include "headshare/report/html/html_origin.h"

#include <algorithm>
#include <array>

#include "headshare/base/error.h"
#include "headshare/base/strings/format.h"
#include "headshare/report/statistics/option_names.h"
#include "headshare/report/statistics/wording.h"
#include "headshare/report/svg/svg_plot.h"

namespace headshare {
namespace {

using Json = nlohmann::ordered_json;

std::string commands_html(const std::string& commands) {
  std::string made;
  for (size_t at = 0; at <= commands.size();) {
    const size_t end = std::min(commands.find('\n', at), commands.size());
    made += (made.empty() ? "" : "\n") + escape_html(commands.substr(at, end - at));
    at = end + 1;
  }
  const bool several = commands.find('\n') != std::string::npos;
  return join_text("<p>", several ? "These commands" : "This command", " made it:</p>\n<pre><code>", made,
                   "</code></pre>\n");
}

// Reads an environment key by key; what nobody asked for is left over.
class Reader {
 public:
  explicit Reader(const Json& environment) : left_(environment) {}

  // Returns the value in words; "" without it.
  std::string text(const char* key) {
    if (!left_.contains(key)) return "";
    const std::string value = option_value(left_[key]);
    left_.erase(key);
    return value;
  }

  std::optional<double> number(const char* key) {
    if (!left_.contains(key) || !left_[key].is_number()) return std::nullopt;
    const double value = left_[key].get<double>();
    left_.erase(key);
    return value;
  }

  const Json& left() const { return left_; }

 private:
  Json left_;
};

std::string program_sentence(Reader* of) {
  const std::string version = of->text("headshare");
  std::string commit = of->text("commit");
  const std::string torch = of->text("torch");
  if (version.empty() && commit.empty() && torch.empty()) return "";
  constexpr std::string_view kDirty = "-dirty";
  const bool changed = commit.ends_with(kDirty);
  if (changed) commit.resize(commit.size() - kDirty.size());
  std::string text = "It ran headshare" + (version.empty() ? "" : " " + version);
  if (!commit.empty())
    text += join_text(" (commit ", commit, changed ? " with changes that were not committed" : "", ")");
  return text + (torch.empty() ? "" : " with libtorch " + torch) + ". ";
}

std::string machine_sentence(Reader* of) {
  std::vector<std::string> parts;
  if (const std::string processor = of->text("processor"); !processor.empty()) parts.push_back(processor);
  const auto count = [&](const char* key, const char* what) {
    if (const auto value = of->number(key)) parts.push_back(plural(static_cast<size_t>(std::max(0.0, *value)), what));
  };
  count("cores", "core");
  count("threads", "thread");
  if (const std::string sets = of->text("instructions"); !sets.empty()) parts.push_back(sets + " instructions");
  if (const auto bytes = of->number("memory_bytes")) {
    const auto free = of->number("memory_available_bytes");
    parts.push_back(
        join_text(bytes_text(*bytes), " of memory", free ? join_text(" (", bytes_text(*free), " free)") : ""));
  }
  if (const auto devices = of->number("cuda_devices")) {
    parts.push_back(*devices > 0 ? plural(static_cast<size_t>(*devices), "GPU") : "no GPU");
  }
  return parts.empty() ? "" : "The machine: " + list_text(parts) + ".";
}

std::string pair_html(const std::string& name, const std::string& value) {
  return join_text("<dt>", escape_html(capitalised(name)), "</dt><dd>", escape_html(value), "</dd>\n");
}

template <class Object>
std::string pairs_html(const Object& object) {
  std::string made;
  for (const auto& [key, value] : object.items()) made += pair_html(option_name(key), option_value(value));
  return made.empty() ? "" : "<dl class=\"pairs\">" + made + "</dl>\n";
}

// Lists the backends of attention that the program had.
std::string backends_html(const Json& backends) {
  std::string made;
  for (const Json& one : backends) {
    if (!one.is_object() || !one.contains("name")) continue;
    made +=
        pair_html(option_name(option_value(one["name"])), one.contains("summary") ? option_value(one["summary"]) : "");
  }
  if (made.empty()) return "";
  return "<details><summary>Attention backends</summary>\n<dl class=\"pairs\">" + made + "</dl></details>\n";
}

std::string environment_html(Json environment) {
  std::string backends;
  if (environment.contains("attention_backends")) {
    backends = backends_html(environment["attention_backends"]);
    environment.erase("attention_backends");
  }
  Reader reader(environment);
  const std::string sentences = program_sentence(&reader) + machine_sentence(&reader);
  return (sentences.empty() ? "" : "<p>" + escape_html(sentences) + "</p>\n") + pairs_html(reader.left()) + backends;
}

// Writes the environments: of results that were merged every run has one under its name.
std::string environments_html(const Json& environment) {
  const bool merged =
      environment.is_object() && !environment.empty() &&
      std::all_of(environment.begin(), environment.end(), [](const Json& one) { return one.is_object(); });
  if (!merged) return environment_html(environment);
  std::string made;
  for (const auto& [run, one] : environment.items()) {
    made += "<h4>Run " + escape_html(run) + "</h4>\n" + environment_html(one);
  }
  return made;
}

}  // namespace

std::string origin_html(const Results& results) {
  std::string made = results.command.empty() ? "" : commands_html(results.command);
  made += environments_html(results.environment);
  if (!results.cells.empty() && !results.cells.front().signature.empty()) {
    made += "<p>How " + escape_html(quality_name(results.subject)) + " was computed: <code>" +
            escape_html(results.cells.front().signature) + "</code></p>\n";
  }
  const std::string options = pairs_html(results.options);
  return options.empty() ? made : made + "<details><summary>All options</summary>\n" + options + "</details>\n";
}

}  // namespace headshare
