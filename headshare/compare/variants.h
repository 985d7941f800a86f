// Variants stand side by side in a comparison: the chosen schemes, and the sets of options that the user named.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "headshare/compare/options.h"
#include "headshare/report/results/results.h"

namespace headshare {

// Returns the schemes of --schemes in the registry's order, each a variant of its name, then the variants of --variants
// in theirs. sha joins them where PEoP is asked for and no variant has that scheme. With --embeddings each variant
// stands with every embedding. Throws Error for a name that is taken or odd, for an unknown option, and for one that
// --sweep varies, too.
std::vector<Variant> chosen_variants(const ComparisonOptions& options);

// Returns the same variants without --embeddings.
std::vector<Variant> attention_variants(const ComparisonOptions& options);

// Finds the variant of that name; returns nullptr where there is none.
const Variant* find_variant(const std::vector<Variant>& among, const std::string& name);

// Throws Error when options.scheme_steps is no list of variants' steps, or stands without matching time, and when steps
// are given where time decides them.
void check_scheme_steps(const ComparisonOptions& options);

// Throws Error when the user asks for steps of what is not compared, or twice for the same. The options of an earlier
// comparison may have steps of more variants than are compared now.
void check_asked_scheme_steps(const ComparisonOptions& options);

// Returns `options` with the variant's own options.
ComparisonOptions with_variant(ComparisonOptions options, const Variant& variant);

// Says why a variant cannot be part of this comparison ("el_shared ... rotary"), or "" when it can.
std::string why_not(const ComparisonOptions& options, const Variant& variant);

// Returns those of chosen_variants() that are trained and can be.
std::vector<Variant> trainable_variants(const ComparisonOptions& options);

using VariantsByGate = std::map<std::string, std::vector<std::string>>;  // names of variants, by their --output-gate

// Returns the gate of a layer with these options by its name on the command line.
std::string gate_name(AttentionOptions attention);

// Returns the gates of the trainable variants.
VariantsByGate planned_gates(const ComparisonOptions& options);

// Says which models have an output gate, because a gate may move quality more than a scheme does; "" where none has
// one.
std::string gate_sentence(const VariantsByGate& variants);

// Finds the variant with the same options and the scheme whose weights `variant` has (el_lossless: mha). Returns
// nullptr where there is none.
const Variant* trained_twin(const ComparisonOptions& options, const Variant& variant,
                            const std::vector<Variant>& among);

// Returns the variants that --reference and --peop-reference name; without these options the variants named mha and
// sha, or the first ones of these schemes. Throws Error for a name that is not among them.
References chosen_references(const ComparisonOptions& options, const std::vector<Variant>& among);

// Throws Error as chosen_references() does.
void check_references(const ComparisonOptions& options, const std::vector<Variant>& among);

}  // namespace headshare
