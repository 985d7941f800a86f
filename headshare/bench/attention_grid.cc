#include "headshare/bench/attention_grid.h"

#include <algorithm>

#include "headshare/attention/scheme_record.h"
#include "headshare/base/error.h"

namespace headshare {
namespace {

template <class E>
std::vector<E> parse_names(const std::string& option, const std::vector<std::string>& texts,
                           const EnumNames<E>& names) {
  std::vector<E> values;
  for (const std::string& text : texts) {
    E value = names.front().first;
    field(option, &value, "", names).parse(text);
    values.push_back(value);
  }
  return values;
}

std::vector<double> parse_dropout(const std::vector<std::string>& texts) {
  std::vector<double> values;
  for (const std::string& text : texts) {
    double value = 0;
    field("dropout", &value, "", {.min = 0, .max = 0.9}).parse(text);
    values.push_back(value);
  }
  return values;
}

// Lists p and the kind of mask, which counts above 0 only.
std::vector<std::pair<double, DropoutMaskKind>> dropouts_of(const AttentionGrid& grid) {
  const auto kinds = parse_names("dropout-masks", grid.dropout_masks, dropout_mask_names());
  std::vector<std::pair<double, DropoutMaskKind>> all;
  for (const double p : parse_dropout(grid.dropout)) {
    if (p == 0) all.emplace_back(p, DropoutMaskKind::kPerHead);
    for (const DropoutMaskKind kind : kinds) {
      if (p > 0) all.emplace_back(p, kind);
    }
  }
  return all;
}

// Lists everything of a case but its scheme, in the grid's order.
std::vector<AttentionCase> settings_of(const AttentionGrid& grid) {
  const EnumNames<bool> masks = {{false, "full"}, {true, "causal"}};
  std::vector<AttentionCase> cases;
  for (const Precision precision : precisions_of(grid, attention_precision_names())) {
    for (const Pass pass : parse_names("passes", grid.passes, pass_names())) {
      for (const auto& [dropout, kind] : dropouts_of(grid)) {
        if (dropout > 0 && pass == Pass::kForward) continue;
        for (const bool causal : parse_names("masks", grid.masks, masks)) {
          cases.push_back({.head_width = grid.head_width,
                           .causal = causal,
                           .dropout = dropout,
                           .dropout_mask = kind,
                           .pass = pass,
                           .precision = precision,
                           .device = grid.device});
        }
      }
    }
  }
  return cases;
}

// Adds the same case for every scheme; collaborative attention once for every key width.
void add_schemes(const AttentionGrid& grid, AttentionCase one, std::vector<AttentionCase>* cases) {
  const std::vector<int64_t> automatic = {2 * grid.head_width};
  for (const std::string& scheme : chosen_schemes(grid.schemes)) {
    one.scheme = scheme;
    const bool has_width = scheme_record(scheme).shares_key_width && !grid.key_widths.empty();
    for (const int64_t width : has_width ? grid.key_widths : automatic) {
      one.key_width = width;
      cases->push_back(one);
    }
  }
}

}  // namespace

Fields fields(AttentionGrid& g) {
  const FieldOptions size = {.min = 1, .max = 1 << 24};
  return {
      field("schemes", &g.schemes, "attention schemes, or all", {.aliases = {"scheme"}}),
      field("passes", &g.passes, "forward, training (forward and gradients)"),
      field("masks", &g.masks, "full, causal"),
      field("dropout", &g.dropout, "on the attention weights; above 0 in training only"),
      field("dropout-masks", &g.dropout_masks, "per_head, shared (one for all heads; torch draws one a head)"),
      field("precisions", &g.precisions, "fp32, bf16; of products bf16x3 too"),
      field("heads", &g.heads, "attention heads", {.min = 1, .max = 4096}),
      field("lengths", &g.lengths, "keys per sequence", size),
      field("queries", &g.queries, "queries per sequence, 1 for decoding; auto: as many as keys", size),
      field("head-width", &g.head_width, "width of a head", {.min = 1, .max = 4096}),
      field("key-widths", &g.key_widths, "key widths of collaborative attention; default twice the head width", size),
      field("tokens", &g.tokens, "batch size x length, for an automatic batch size", size),
      field("batch-size", &g.batch_size, "sequences; auto: tokens / length", size),
  };
}

int64_t batch_size_of(const AttentionGrid& grid, int64_t length) {
  return grid.batch_size.value_or(std::max<int64_t>(1, grid.tokens / length));
}

std::vector<Precision> precisions_of(const AttentionGrid& grid, const EnumNames<Precision>& known) {
  return parse_names("precisions", grid.precisions, known);
}

std::vector<AttentionCase> cases_of(const AttentionGrid& grid) {
  std::vector<AttentionCase> cases;
  for (AttentionCase one : settings_of(grid)) {
    for (const int64_t heads : grid.heads) {
      for (const int64_t length : grid.lengths) {
        one.heads = heads;
        one.keys = length;
        one.queries = grid.queries.value_or(length);
        one.batch = batch_size_of(grid, length);
        add_schemes(grid, one, &cases);
      }
    }
  }
  HS_CHECK(!cases.empty(), "no case is left: dropout above 0 is measured in training only");
  return cases;
}

}  // namespace headshare
