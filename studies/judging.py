"""Tells which differences of a comparison are significant: the rule of docs/design/025-judging-differences.md.

The program's own is judge_differences in headshare/metrics/statistics.cc; tests/docs/test_judging.py holds both together.
Standard library only, because `make check` runs on a machine without the virtual environment.
"""

import collections
import dataclasses
import functools
import math
import statistics

CONFIDENCE = 0.95  # of all intervals of one comparison together
FEWEST_SEEDS = 3
INTERVALS = 2000  # of Simpson's rule


def student_t(degrees_of_freedom, probability):
    """Returns the t with P(T <= t) = probability, for a probability from 0.5 to 1."""
    # With t = sqrt(df) tan(a) the density of a is cos(a)^(df - 1), up to a factor.
    half = math.sqrt(math.pi) / 2 * math.gamma(degrees_of_freedom / 2) / math.gamma((degrees_of_freedom + 1) / 2)

    def density(angle):
        return math.cos(angle) ** (degrees_of_freedom - 1)

    def mass(angle):  # between 0 and angle
        step = angle / INTERVALS
        inner = sum((2 + 2 * (i % 2)) * density(i * step) for i in range(1, INTERVALS))
        return step / 3 * (density(0) + inner + density(angle))

    low, high = 0.0, math.pi / 2
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if 0.5 + mass(middle) / half / 2 < probability else (low, middle)
    return math.sqrt(degrees_of_freedom) * math.tan(low)


def tail(degrees_of_freedom, t):
    """Returns P(|T| >= t), two-sided, by the same rule."""
    if math.isinf(t):
        return 0.0
    half = math.sqrt(math.pi) / 2 * math.gamma(degrees_of_freedom / 2) / math.gamma((degrees_of_freedom + 1) / 2)
    first = math.atan(t / math.sqrt(degrees_of_freedom))  # the rest of the way to pi / 2 is summed: no cancellation
    step = (math.pi / 2 - first) / INTERVALS
    density = [math.cos(first + i * step) ** (degrees_of_freedom - 1) for i in range(INTERVALS)] + [0.0]
    inner = sum((2 + 2 * (i % 2)) * density[i] for i in range(1, INTERVALS))
    return min(1.0, step / 3 * (density[0] + inner + density[-1]) / half)


@functools.cache
def half_width_factor(seeds, compared):
    """Returns the half width of an interval over its deviation: Bonferroni's correction is for `compared` variants."""
    degrees_of_freedom = (seeds - 1) * (compared + 2) / 3
    return student_t(degrees_of_freedom, 1 - (1 - CONFIDENCE) / 2 / compared) / math.sqrt(seeds)


@dataclasses.dataclass
class Difference:
    """A difference is a variant minus the reference; the interval is None where the seeds are too few to judge."""

    mean: float
    interval: tuple[float, float] | None
    p: float = 1.0  # two-sided, of this difference alone

    def __post_init__(self):
        low, high = self.interval or (-math.inf, math.inf)
        self.direction = (low > 0) - (high < 0)  # 1 or -1 where the difference is significant


def judge(lists):
    """Turns the paired differences by seed of each variant into Difference."""
    judged = {name: values for name, values in lists.items() if len(values) >= FEWEST_SEEDS}
    squares = sum(statistics.variance(values) * (len(values) - 1) for values in judged.values())
    freedom = sum(len(values) - 1 for values in judged.values())

    def one(name, values):
        center = statistics.fmean(values)
        if name not in judged:
            return Difference(center, None)
        deviation = max(statistics.stdev(values), math.sqrt(squares / freedom))
        half = half_width_factor(len(values), len(judged)) * deviation
        freedom_of_one = (len(values) - 1) * (len(judged) + 2) / 3
        t = abs(center) / (deviation / math.sqrt(len(values))) if deviation > 0 else math.inf if center else 0.0
        return Difference(center, (center - half, center + half), tail(freedom_of_one, t))

    return {name: one(name, values) for name, values in lists.items()}


def judge_redrawn(measured):
    """Turns {name: (difference, its standard deviation when the scored items are drawn anew)} into Difference. One trained
    model has no seeds: what is judged holds for this model alone."""
    normal = statistics.NormalDist()

    def one(mean, deviation):
        half = normal.inv_cdf(1 - (1 - CONFIDENCE) / 2 / len(measured)) * deviation
        z = abs(mean) / deviation if deviation > 0 else math.inf if mean else 0.0
        return Difference(mean, (mean - half, mean + half), math.erfc(z / math.sqrt(2)))

    return {name: one(*found) for name, found in measured.items()}


def differences(results, reference="mha"):
    """Returns {variant: Difference} of a results.json (read by comparison_results.py), each at the setting it chose."""
    figure = "test_loss" if results["subject"]["measure"] in ("perplexity", "masked-perplexity") else "quality"
    chosen = {row["variant"]: row["setting"] for row in results["rows"]}
    by_seed = {}
    for cell in results["cells"]:
        trained = cell["weights_of"] is None
        if trained and cell["setting"] == chosen[cell["variant"]]:
            by_seed.setdefault(cell["variant"], {})[cell["seed"]] = cell[figure]
    theirs = by_seed.pop(reference, {})
    pairs = {
        variant: [value - theirs[seed] for seed, value in ours.items() if seed in theirs] for variant, ours in by_seed.items()
    }
    return judge({variant: values for variant, values in pairs.items() if values})


def against(by_seed, reference):
    """Judges {variant: {seed: value}} minus the reference's value of the same seed."""
    theirs = by_seed[reference]
    return judge({
        variant: [value - theirs[seed] for seed, value in ours.items() if seed in theirs]
        for variant, ours in by_seed.items()
        if variant != reference
    })


def smallest_visible(judged):
    """Returns the least size from which on one of these differences can be significant by its interval."""
    return min((one.interval[1] - one.interval[0]) / 2 for one in judged.values() if one.interval)


def ratio_interval(ours, theirs):
    """Returns Fieller's 95 % interval (1954) of mean(ours) / mean(theirs) of paired values, or None where theirs is not
    distinguishable from 0 or the seeds are too few."""
    count = len(ours)
    if count < FEWEST_SEEDS:
        return None
    t = student_t(count - 1, 1 - (1 - CONFIDENCE) / 2)
    x, y = statistics.fmean(ours), statistics.fmean(theirs)
    a = y * y - t * t * statistics.variance(theirs) / count
    b = x * y - t * t * statistics.covariance(ours, theirs) / count
    c = x * x - t * t * statistics.variance(ours) / count
    if a <= 0:
        return None
    half = math.sqrt(max(0.0, b * b - a * c))
    return (b - half) / a, (b + half) / a


def rank_sum_p(ours, theirs):
    """Returns the two-sided p-value of Wilcoxon's rank sum (1945), exact: over all ways to deal the values out, equal
    ones included. Infinity stands for what was never reached."""
    values = sorted([*ours, *theirs])
    doubled = {value: 2 * values.index(value) + values.count(value) + 1 for value in values}  # twice the middle rank
    ways = collections.Counter({(0, 0): 1})  # (values dealt to the first group, sum of their ranks)
    for value in values:
        for (count, total), number in list(ways.items()):
            ways[count + 1, total + doubled[value]] += number
    middle = len(ours) * (len(values) + 1)
    distance = abs(sum(doubled[value] for value in ours) - middle)
    sums = {total: number for (count, total), number in ways.items() if count == len(ours)}
    return sum(number for total, number in sums.items() if abs(total - middle) >= distance) / sum(sums.values())


def holm(p_values):
    """Tells which hypotheses Holm's step-down procedure (1979) rejects, so that all errors together stay below 1 -
    CONFIDENCE."""
    order = sorted(p_values, key=p_values.get)
    rejected = set()
    for rank, name in enumerate(order):
        if p_values[name] > (1 - CONFIDENCE) / (len(order) - rank):
            break
        rejected.add(name)
    return rejected


def arrows(comparisons, smallest):
    """Returns {(comparison, variant): 1 or -1} of a table of many comparisons: {name: {variant: Difference}}. An arrow
    is for a difference that Holm's correction over the whole table leaves significant and that is at least
    `smallest`."""
    p_values = {(name, variant): one.p for name, found in comparisons.items() for variant, one in found.items() if one.interval}
    return {
        key: 1 if comparisons[key[0]][key[1]].mean > 0 else -1
        for key in holm(p_values)
        if abs(comparisons[key[0]][key[1]].mean) >= smallest
    }
