#!/usr/bin/env python3
"""How often simultaneous intervals report a false difference, and how often they detect a true one.

Judges simulated comparisons by three rules:
    ours    the rule of the program and of judging.py
    own     Bonferroni, each variant with its own deviation and n - 1 degrees of freedom
    pooled  Bonferroni, one deviation for all, k (n - 1) degrees of freedom
Each cell has two shares: comparisons with at least one false difference (target: at most 5 %), and true differences of
five deviations that are detected. docs/design/025-judging-differences.md has the output.
"""

import argparse

import judging
import numpy as np
from scipy import stats

TRIALS = 6000
EFFECT = 5.0  # standard deviations of one seed


def half_widths(differences):
    """Returns, of [trials, k, n] differences to one reference, half widths of the mean, [trials, k], by method."""
    _, k, n = differences.shape
    own = differences.std(axis=2, ddof=1)
    pooled = np.sqrt((own**2).mean(axis=1, keepdims=True))
    share = 1 - 0.025 / k
    return {
        "ours": judging.half_width_factor(n, k) * np.maximum(own, pooled),
        "own": stats.t.ppf(share, n - 1) * own / np.sqrt(n),
        "pooled": stats.t.ppf(share, k * (n - 1)) * np.broadcast_to(pooled, own.shape) / np.sqrt(n),
    }


def shares(rng, k, n, deviations):
    """Returns {method: (comparisons with a false difference, true differences seen)}."""
    seeds = rng.normal(size=(TRIALS, k + 1, n)) * np.asarray(deviations)[None, :, None]
    differences = seeds[:, 1:] - seeds[:, :1]
    mean = differences.mean(axis=2)
    return {
        name: (float((np.abs(mean) > half).any(axis=1).mean()), float((np.abs(mean + EFFECT) > half).mean()))
        for name, half in half_widths(differences).items()
    }


def situations(k):
    """Returns deviations of the reference and of k variants."""
    return {
        "all scatter alike": [1.0] * (k + 1),
        "one variant 5 times": [1.0] * k + [5.0],
        "one variant 20 times": [1.0] * k + [20.0],
        "the reference 3 times": [3.0] + [1.0] * k,
        "the reference 10 times": [10.0] + [1.0] * k,
        "half of them 3 times": [1.0] * (k // 2 + 1) + [3.0] * (k - k // 2),
        "the reference a fifth": [0.2] + [1.0] * k,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    rng = np.random.default_rng(parser.parse_args().seed)
    print("| variants | seeds | deviations | ours | own | pooled |")
    print("|---|---|---|---|---|---|")
    for k in (2, 8):
        for n in (3, 5, 10):
            for name, deviations in situations(k).items():
                found = shares(rng, k, n, deviations)
                cells = " | ".join(f"{100 * wrong:.1f} %, {100 * seen:.0f} %" for wrong, seen in found.values())
                print(f"| {k} | {n} | {name} | {cells} |")


if __name__ == "__main__":
    main()
