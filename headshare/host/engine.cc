#include "headshare/host/engine.h"

#include "headshare/base/error.h"
#include "headshare/base/options/nearest.h"

namespace headshare {
namespace {

// This is what the user asked for: "local:2", "slurm:partition=short".
struct EngineChoice {
  std::string name;     // "local"
  std::string options;  // "2"; "" where nothing stands behind the name
};

EngineChoice engine_choice(const std::string& workers) {
  const size_t colon = workers.find(':');
  if (colon == std::string::npos) return {.name = workers, .options = ""};
  return {.name = workers.substr(0, colon), .options = workers.substr(colon + 1)};
}

}  // namespace

std::vector<std::string> cell_words(const EngineCall& call, size_t cell) {
  return {"cell", call.home.string(), std::to_string(cell), "--plan-id", call.plan_id, "--quiet"};
}

const std::vector<EngineRecord>& engine_records() {
  static const std::vector<EngineRecord> records = {local_engine(), slurm_engine()};
  return records;
}

const EngineRecord& engine_record(const std::string& workers) {
  const std::string name = engine_choice(workers).name;
  std::vector<std::string> names;
  std::string known;
  for (const EngineRecord& one : engine_records()) {
    if (one.name == name) return one;
    names.push_back(one.name);
    known += (known.empty() ? "" : "; ") + one.help;
  }
  throw Error(join_text("--workers ", workers, ": there is no ", name, did_you_mean(name, names), " (", known, ")"));
}

size_t cells_at_once(const std::string& workers) {
  return engine_record(workers).at_once(engine_choice(workers).options);
}

std::unique_ptr<Engine> make_engine(const std::string& workers, const EngineCall& call) {
  return engine_record(workers).make(engine_choice(workers).options, call);
}

}  // namespace headshare
