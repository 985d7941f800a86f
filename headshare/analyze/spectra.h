// A spectrum tells how the energy of a layer's query-key maps is spread over dimensions, from thin factors: no map of a
// head is ever formed (docs/mathematics.md#redundancy-of-heads). `width`: dimensions of the keys behind all heads,
// full_key_width(); a collaborative layer's heads have theirs in common.
#pragma once

#include "headshare/convert/collaborative/decomposition.h"
#include "headshare/report/analysis/head_analysis.h"

namespace headshare {

// Returns the spectrum of each P_h = A_h B_h^H. Over F problems it has their values together, falling.
std::vector<Spectrum> head_spectra(const HeadSlices& slices);

// Returns the spectrum of sum_h A_h B_h^H, which is W_Q W_K^T with all heads' maps side by side (Cordonnier et al.,
// figure 2).
Spectrum joint_spectrum(const HeadSlices& slices, int64_t width);

// Returns the spectrum of [P_1 .. P_H] or of [P_1^H .. P_H^H], the one that needs more dimensions for kEnergyShare of
// its energy. Shared maps of width R have at most R directions of each side, so that the energy beyond is lost whatever
// the maps are.
Spectrum stacked_spectrum(const HeadSlices& slices, int64_t width);

}  // namespace headshare
