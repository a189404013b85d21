"""Ranges of keys, from what is known of their columns.

    a column    spans: bytes [low, high) of the column's own encoding, disjoint and in order
    a key       ranges: bytes [low, high) of whole keys, disjoint and in order

The encoding of a key is that of its columns one after the other, so a range is the encodings of
columns with one value each, and then a span of the next column. What is read may always be more
than what is wanted, never less.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from belvedere.encoding.one_key import NULL, VALUE

_AFTER = b"\xff"  # after a prefix: behind all keys that begin with it
_END = b"\x02"  # behind the tags of NULL and of values
MOST = 10_000  # ranges of one read: beyond, one wide range costs less than many narrow ones


@dataclass(frozen=True, slots=True)
class Span:
    """Encodings of one column."""

    low: bytes
    high: bytes

    @property
    def is_point(self) -> bool:
        """Whether it is one value, whose encoding is `low`."""
        return self.high == self.low + _AFTER


Spans: TypeAlias = tuple[Span, ...]
NULLS: Spans = (Span(NULL, NULL + _AFTER),)
VALUES: Spans = (Span(VALUE, _END),)
NOTHING: Spans = ()


def point(value: bytes) -> Span:
    return Span(value, value + _AFTER)


def below(value: bytes, inclusive: bool) -> Span:
    """Values up to this one."""
    return Span(VALUE, value + _AFTER if inclusive else value)


def above(value: bytes, inclusive: bool) -> Span:
    """Values from this one on."""
    return Span(value if inclusive else value + _AFTER, _END)


def in_order(spans: Iterable[Span]) -> Spans:
    """Disjoint spans, sorted and each once."""
    return tuple(sorted(set(spans), key=lambda span: span.low))


def intersect(some: Spans, others: Spans) -> Spans:
    """What is in both; one pass over both, as each is in order."""
    found: list[Span] = []
    i = j = 0
    while i < len(some) and j < len(others):
        a, b = some[i], others[j]
        low, high = max(a.low, b.low), min(a.high, b.high)
        if low < high:
            found.append(Span(low, high))
        if a.high <= b.high:
            i += 1
        else:
            j += 1
    return tuple(found)


def union(spans: Iterable[Span]) -> Spans:
    """What is in any of them; spans that overlap become one."""
    found: list[Span] = []
    for each in in_order(spans):
        if found and each.low < found[-1].high:
            found[-1] = Span(found[-1].low, max(found[-1].high, each.high))
        else:
            found.append(each)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Keys with low <= key < high; `bound` are the encodings of the first columns if all these keys
    agree on them.
    """

    bound: tuple[bytes, ...]
    low: bytes
    high: bytes | None

    def is_key(self, columns: int) -> bool:
        """Whether it is one whole key, which is `low`."""
        return len(self.bound) == columns


Ranges: TypeAlias = tuple[KeyRange, ...]
EVERYTHING: Ranges = (KeyRange((), b"", None),)


def ranges_of(columns: Sequence[Spans | None]) -> Ranges:
    """The keys whose columns are in these spans; None says nothing of a column.

    Columns are used while all before them have single values, and while the ranges are not many.
    """
    found: list[tuple[bytes, ...]] = [()]
    for spans in columns:
        if spans is None:
            break
        if len(found) * len(spans) > MOST:
            spans = (Span(spans[0].low, spans[-1].high),)
        if not all(span.is_point for span in spans):
            return tuple(
                KeyRange(bound, b"".join(bound) + span.low, b"".join(bound) + span.high)
                for bound in found
                for span in spans
            )
        found = [(*bound, span.low) for bound in found for span in spans]
    if found == [()]:
        return EVERYTHING
    return tuple(KeyRange(bound, b"".join(bound), b"".join(bound) + _AFTER) for bound in found)


def says_all(columns: Sequence[Spans | None]) -> bool:
    """Whether `ranges_of` these spans has no key beside those whose columns are in them."""
    given = [spans for spans in columns if spans is not None]
    is_prefix = None not in columns[: len(given)]
    counts = accumulate(map(len, given), operator.mul)
    single = all(span.is_point for spans in given[:-1] for span in spans)
    return is_prefix and single and all(count <= MOST for count in counts)


def unite(ranges: Iterable[KeyRange]) -> Ranges:
    """Ranges that may overlap, as disjoint ones in order."""
    found: list[KeyRange] = []
    for each in sorted(ranges, key=lambda r: r.low):
        last = found[-1] if found else None
        if last is not None and (last.high is None or each.low < last.high):
            found[-1] = _hull(last, each)
        else:
            found.append(each)
    return tuple(found)


def _hull(a: KeyRange, b: KeyRange) -> KeyRange:
    """Both, of ranges that overlap, with the smaller `low` first."""
    high = None if a.high is None or b.high is None else max(a.high, b.high)
    shared = 0
    for one, other in zip(a.bound, b.bound, strict=False):
        if one != other:
            break
        shared += 1
    return KeyRange(a.bound[:shared], a.low, high)
