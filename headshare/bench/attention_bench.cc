#include "headshare/bench/attention_bench.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/bench/attention_check.h"
#include "headshare/bench/process_memory.h"

namespace headshare {
namespace {

using MakeContenders = std::function<std::vector<Contender>(const CaseInputs&)>;

struct Prepared {
  CaseInputs inputs;
  std::vector<Contender> contenders = {};
  std::vector<AttentionRow> rows = {};  // one for each
};

void refuse(AttentionRow* row, const Objection& objection) {
  if (objection && row->refused.empty()) row->refused = *objection;
}

void check_formula(const CaseInputs& inputs, const std::vector<Contender>& contenders, Prepared* prepared) {
  const FormulaCheck check(inputs, prepared->rows.front().of.pass);
  for (size_t i = 0; i < contenders.size(); ++i) refuse(&prepared->rows[i], check(contenders[i]));
}

void check_dropout(const AttentionCase& one, const MakeContenders& make, Prepared* prepared) {
  AttentionCase plain = one;
  plain.dropout = 0;
  const CaseInputs plain_inputs = make_inputs(plain, Fill::kNormal);
  check_formula(plain_inputs, make(plain_inputs), prepared);
  const CaseInputs uniform = make_inputs(one, Fill::kUniform);
  const std::vector<Contender> contenders = make(uniform);
  for (size_t i = 0; i < contenders.size(); ++i) {
    refuse(&prepared->rows[i], check_dropout_statistics(contenders[i], uniform));
    if (one.pass == Pass::kTraining) refuse(&prepared->rows[i], check_dropout_gradient(prepared->contenders[i]));
  }
}

Prepared prepare(const AttentionCase& one, const AttentionBenchOptions& options) {
  Prepared prepared{.inputs = make_inputs(one, Fill::kNormal)};
  prepared.contenders = options.contenders(prepared.inputs);
  const int64_t cache = prepared.inputs.cache ? prepared.inputs.cache->allocated_bytes() : 0;
  for (const Contender& contender : prepared.contenders) {
    prepared.rows.push_back({.of = one,
                             .contender = contender.name,
                             .backend = contender.backend,
                             .is_baseline = contender.is_baseline,
                             .cache_bytes = cache});
  }
  options.turns.between();
  if (one.dropout > 0) {
    check_dropout(one, options.contenders, &prepared);
  } else {
    check_formula(prepared.inputs, prepared.contenders, &prepared);
  }
  for (size_t i = 0; i < prepared.contenders.size(); ++i) {
    if (!prepared.rows[i].refused.empty() || !one.device.is_cpu())
      continue;  // a process does not hold a device's memory
    options.turns.between();
    prepared.rows[i].peak_bytes =
        peak_bytes_of([&] { run_once(prepared.contenders[i], one.pass, prepared.inputs.output_gradient); });
  }
  return prepared;
}

// Fills in how many times as fast as the fastest baseline each row of one case is.
void relate_to_baseline(std::vector<AttentionRow>* rows) {
  double fastest = 0;
  for (const AttentionRow& row : *rows) {
    if (!row.is_baseline || !row.refused.empty()) continue;
    fastest = fastest == 0 ? row.timing.median_ms : std::min(fastest, row.timing.median_ms);
  }
  for (AttentionRow& row : *rows) {
    if (fastest > 0 && row.refused.empty()) row.ratio = fastest / row.timing.median_ms;
  }
}

}  // namespace

std::vector<AttentionRow> bench_attention(const std::vector<AttentionCase>& group,
                                          const AttentionBenchOptions& options) {
  std::vector<Prepared> all;
  for (const AttentionCase& one : group) all.push_back(prepare(one, options));
  std::vector<std::function<void()>> actions;
  std::vector<AttentionRow*> timed;
  for (Prepared& prepared : all) {
    for (size_t i = 0; i < prepared.contenders.size(); ++i) {
      if (!prepared.rows[i].refused.empty()) continue;
      timed.push_back(&prepared.rows[i]);
      actions.emplace_back([&contender = prepared.contenders[i], &prepared] {
        run_once(contender, prepared.rows.front().of.pass, prepared.inputs.output_gradient);
      });
    }
  }
  TurnOptions turns = options.turns;
  if (!group.empty()) turns.device = group.front().device;
  for (const AttentionCase& one : group) {
    HS_CHECK(one.device == turns.device, "cases that take turns must be on one device, not on ", one.device.str(),
             " and ", turns.device.str());
  }
  const std::vector<Timing> timings = take_turns(actions, turns);
  for (size_t i = 0; i < timed.size(); ++i) timed[i]->timing = timings[i];
  std::vector<AttentionRow> rows;
  for (Prepared& prepared : all) {
    relate_to_baseline(&prepared.rows);
    std::move(prepared.rows.begin(), prepared.rows.end(), std::back_inserter(rows));
  }
  return rows;
}

}  // namespace headshare
