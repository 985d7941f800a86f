"""Measures how well scores rank pairs of texts, and how much the difference of two rankings depends on which pairs were drawn.

The measure is the area under the ROC curve: the share of (paraphrase, no paraphrase) whose scores stand in order; equal scores
count half. Pairs that share a text are no independent draws, so that groups of connected pairs (connected_rows.py) are drawn anew,
the same for all rankings.
"""

import numpy


def areas(scores, labels, weights):
    """Returns the area under the ROC curve for each row of weights.

    Args:
        scores: [n] floats.
        labels: [n] bools, True for a paraphrase.
        weights: [B, n], how often each row counts which pair.
    """
    order = numpy.argsort(scores)
    ranked, positive, counted = scores[order], labels[order], weights[:, order].astype(float)
    negatives = numpy.zeros((len(weights), len(scores) + 1))
    numpy.cumsum(counted * ~positive, axis=1, out=negatives[:, 1:])
    below, up_to = (negatives[:, numpy.searchsorted(ranked, ranked, side)] for side in ("left", "right"))
    in_order = (counted * positive * (below + up_to)).sum(1) / 2
    return in_order / ((counted * positive).sum(1) * negatives[:, -1])


def area(scores, labels):
    return areas(scores, labels, numpy.ones((1, len(scores))))[0]


def redrawn(groups, times, seed):
    """Returns how often each row counts which item: [times, n]. Each row draws as many of the groups [n] as there are, with
    replacement."""
    names, group = numpy.unique(groups, return_inverse=True)
    drawn = numpy.random.default_rng(seed).multinomial(len(names), numpy.full(len(names), 1 / len(names)), size=times)
    return drawn[:, group]
