#include "headshare/bench/attention_bench.h"

#include <algorithm>

#include "headshare/base/error.h"
#include "headshare/bench/attention_check.h"
#include "headshare/bench/process_memory.h"
#include "headshare/ops/device_memory.h"

namespace headshare {
namespace {

using MakeContenders = std::function<std::vector<Contender>(const CaseInputs&)>;

struct Prepared {
  CaseInputs inputs;
  std::vector<Contender> contenders = {};
  std::vector<AttentionRow> rows = {};  // one for each
  double operations = 0;
  double bytes = 0;  // of the cache
};

// A roof of some cases of the group.
struct Roof {
  RoofOptions of;
  std::vector<RoofWay> ways;
  double per_second = 0;
};

void refuse(AttentionRow* row, const Objection& objection) {
  if (objection && row->refused.empty()) row->refused = *objection;
}

void check_formula(const CaseInputs& inputs, const std::vector<Contender>& contenders, Prepared* prepared) {
  const FormulaCheck check(inputs, prepared->rows.front().of.pass);
  for (size_t i = 0; i < contenders.size(); ++i) {
    try {
      refuse(&prepared->rows[i], check(contenders[i]));
    } catch (const c10::OutOfMemoryError&) {  // such as that of all scores; the others may fit
      refuse(&prepared->rows[i], "it does not fit into the memory of " + prepared->rows[i].of.device.str());
    }
  }
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
  prepared.operations = operations_of(one, prepared.inputs.problem());
  prepared.bytes = static_cast<double>(cache);
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
    if (!prepared.rows[i].refused.empty()) continue;
    options.turns.between();
    const auto run = [&] { run_once(prepared.contenders[i], one.pass, prepared.inputs.output_gradient); };
    prepared.rows[i].peak_bytes = one.device.is_cpu() ? peak_bytes_of(run) : device_bytes_of(one.device, run);
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

RoofOptions roof_options(RoofKind kind, const AttentionCase& one, bool small) {
  // STREAM's vectors are float32 whatever the cache holds: bytes are bytes.
  const Precision precision = kind == RoofKind::kStream ? Precision::kFp32 : one.precision;
  return {.kind = kind, .precision = precision, .device = one.device, .small = small};
}

// Returns what bounds a case: the products of heads, and in decoding the reading of the cache as well.
std::vector<RoofKind> kinds_of_roofs(const AttentionCase& one) {
  if (is_decoding(one)) return {RoofKind::kStream, RoofKind::kProduct};
  return {RoofKind::kProduct};
}

bool is_alike(const Roof& roof, const RoofOptions& of) {
  return roof.of.kind == of.kind && roof.of.precision == of.precision;
}

// Makes one roof for each kind of work and precision of the group.
std::vector<Roof> roofs_of(const std::vector<AttentionCase>& group, bool small) {
  std::vector<Roof> roofs;
  for (const AttentionCase& one : group) {
    for (const RoofKind kind : kinds_of_roofs(one)) {
      const RoofOptions of = roof_options(kind, one, small);
      const bool there = std::any_of(roofs.begin(), roofs.end(), [&](const Roof& roof) { return is_alike(roof, of); });
      if (!there) roofs.push_back({.of = of, .ways = roof_ways(of)});
    }
  }
  return roofs;
}

// Lets all contenders that are right, and all roofs, take turns.
void time_all(const TurnOptions& turns, std::vector<Prepared>* all, std::vector<Roof>* roofs) {
  std::vector<std::function<void()>> actions;
  std::vector<AttentionRow*> timed;
  for (Prepared& prepared : *all) {
    for (size_t i = 0; i < prepared.contenders.size(); ++i) {
      if (!prepared.rows[i].refused.empty()) continue;
      timed.push_back(&prepared.rows[i]);
      actions.emplace_back([&contender = prepared.contenders[i], &prepared] {
        run_once(contender, prepared.rows.front().of.pass, prepared.inputs.output_gradient);
      });
    }
  }
  for (const Roof& roof : *roofs) {
    for (const RoofWay& way : roof.ways) actions.push_back(way.run);
  }
  const std::vector<Timing> timings = take_turns(actions, turns);
  for (size_t i = 0; i < timed.size(); ++i) timed[i]->timing = timings[i];
  auto next = timings.begin() + static_cast<std::ptrdiff_t>(timed.size());
  for (Roof& roof : *roofs) {
    const auto end = next + static_cast<std::ptrdiff_t>(roof.ways.size());
    roof.per_second = roof_of(roof.ways, {next, end});
    next = end;
  }
}

// Returns what a row did in a second, beside the roof of one kind; nothing where it was refused.
Rate rate_of(RoofKind kind, const Prepared& prepared, const AttentionRow& row, const std::vector<Roof>& roofs) {
  const RoofOptions of = roof_options(kind, row.of, /*small=*/false);
  const auto roof = std::find_if(roofs.begin(), roofs.end(), [&](const Roof& one) { return is_alike(one, of); });
  const double work = kind == RoofKind::kStream ? prepared.bytes : prepared.operations;
  return {.kind = kind,
          .per_second = row.refused.empty() ? 1000 * work / row.timing.median_ms : 0,
          .roof = roof->per_second};
}

// Fills in what each row of one case did in a second, and the roofs of the turns.
void relate_to_roofs(const std::vector<Roof>& roofs, Prepared* prepared) {
  for (AttentionRow& row : prepared->rows) {
    const std::vector<RoofKind> kinds = kinds_of_roofs(row.of);
    row.rate = rate_of(kinds.front(), *prepared, row, roofs);
    if (is_decoding(row.of)) row.arithmetic = rate_of(kinds.back(), *prepared, row, roofs);
  }
}

}  // namespace

std::vector<AttentionRow> bench_attention(const std::vector<AttentionCase>& group,
                                          const AttentionBenchOptions& options) {
  TurnOptions turns = options.turns;
  if (!group.empty()) turns.device = group.front().device;
  for (const AttentionCase& one : group) {
    HS_CHECK(one.device == turns.device, "cases that take turns must be on one device, not on ", one.device.str(),
             " and ", turns.device.str());
  }
  std::vector<Prepared> all;
  for (const AttentionCase& one : group) all.push_back(prepare(one, options));
  std::vector<Roof> roofs = roofs_of(group, options.small_roofs);
  time_all(turns, &all, &roofs);
  std::vector<AttentionRow> rows;
  for (Prepared& prepared : all) {
    relate_to_baseline(&prepared.rows);
    relate_to_roofs(roofs, &prepared);
    std::move(prepared.rows.begin(), prepared.rows.end(), std::back_inserter(rows));
  }
  return rows;
}

}  // namespace headshare
