"""How many different values a relation has, from how often each one stands in a sample of its rows.

With d different values in the sample, f1 of them once, n rows of N, and the share q = n / N:

    unsmoothed jackknife   d / (1 - (1 - q) f1 / n)
                           exact on average if all values are equally frequent
    second order           adds f1 (1 - q) -ln(1 - q) g / q to d
                           g is the squared coefficient of variation of the frequencies

(The estimator Duj2a of Haas and Stokes, 1998.) Values that are surely seen are counted apart, so
that they do not make all the others look skewed. Which ones these are is a choice: with more than
50 rows in the sample, as the authors say, or with more than chance gives to equally frequent
values. The first is right for a long tail, the second for a few hot values among many equal ones,
where the first is up to four times too large; the answer is the geometric mean of both. What is
certain bounds it: d <= D <= d - f1 + f1 / q, and D <= N.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from belvedere.encoding.arrays import Ints

Floats = npt.NDArray[np.float64]
_SURELY_SEEN = 50


@dataclass(frozen=True, slots=True)
class Distinct:
    """An estimate and the bounds that a sample gives."""

    value: float
    low: float
    high: float

    @property
    def error(self) -> float:
        """About a standard error, relative to the estimate: the bounds are two of them away."""
        return (
            max(self.high - self.value, self.value - self.low) / (2 * self.value)
            if self.value
            else 0.0
        )


def distinct(counts: Ints, rows: float) -> Distinct:
    """`counts` says how often each value stands in the sample; `rows` is how many rows the sample
    stands for.
    """
    seen, total = len(counts), int(counts.sum())
    if not total or rows <= total:
        return Distinct(seen, seen, seen)
    once, share = int((counts == 1).sum()), total / rows
    high = min(rows, seen - once + once / share)

    def beyond(most: float) -> float:
        few = counts[counts <= most]
        value = seen - len(few) + _jackknife(few, once, rows - (total - int(few.sum())) / share)
        return min(max(value, seen), high)

    tail = beyond(_SURELY_SEEN)
    few = int(counts[counts <= _SURELY_SEEN].sum())
    equal = beyond(min(_SURELY_SEEN, _largest_by_chance(few / tail, tail)))
    return Distinct(math.sqrt(tail * equal), seen, high)


def _jackknife(counts: Ints, once: int, rows: float) -> float:
    total = int(counts.sum())
    if not total or rows <= total:
        return len(counts)
    share = total / rows
    unseen = 1 - (1 - share) * once / total
    first = len(counts) / unseen
    skew = max(0.0, first / total**2 * float((counts * (counts - 1)).sum()) + first / rows - 1)
    return (len(counts) - once * (1 - share) * math.log(1 - share) * skew / share) / unseen


def frequencies(counts: Ints, rows: float, values: float) -> Floats:
    """How many rows each value of the sample has in all, without what chance adds to the largest of
    many counts.

        count <= most   mean + (count - mean) * (variance - mean) / variance  (linear Bayes), scaled
        count > most    count - sqrt(count), scaled: surely frequent, by a standard error less

    Counts of equally frequent values scatter as a Poisson distribution does, with a variance equal
    to the mean, and the largest of k of them is below `most` (Bernstein's bound).
    """
    total = int(counts.sum())
    if not total or rows <= total:
        return counts.astype(np.float64)
    most = _largest_by_chance(total / max(values, 1.0), max(values, 1.0))
    few = counts[counts <= most].astype(np.float64)
    others = max(values - (len(counts) - len(few)), 1.0)
    mean = few.sum() / others
    variance = float((few**2).sum()) / others - mean**2
    trust = max(0.0, 1 - mean / variance) if variance > 0 else 0.0
    found = np.where(counts > most, counts - np.sqrt(counts), mean + (counts - mean) * trust)
    return np.maximum(found * rows / total, counts)


def _largest_by_chance(mean: float, values: float) -> float:
    """P(count >= mean + x) <= exp(-x^2 / (2 mean + 2 x / 3)), and this is 1 / values."""
    log = math.log(max(values, 2.0))
    return mean + log / 3 + math.sqrt(log * log / 9 + 2 * log * mean)
