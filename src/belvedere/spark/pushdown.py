"""Filters that Spark passes on, as ranges of keys: what is read may be more than they leave, never
less.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from belvedere.encoding import KeyCodec
from belvedere.encoding.ranges import (
    Ranges,
    Spans,
    above,
    below,
    in_order,
    intersect,
    point,
    ranges_of,
)
from belvedere.sql.query import Keyed
from belvedere.types import SqlType

# of these a Python value has one encoding, whatever Spark made it from
_KINDS = {"int": int, "bigint": int, "string": str, "boolean": bool}


def ranges_of_filters(filters: Sequence[Filter], keyed: Keyed) -> Ranges:
    """What has to be read: filters are joined by AND."""
    spans: dict[str, Spans] = {}
    kinds = {column.name: column.type for column in keyed.schema.key_columns}
    for each in filters:
        name = ".".join(getattr(each, "attribute", ()))
        found = _spans(each, kinds[name], keyed.normalize) if name in kinds else None
        if found is not None:
            spans[name] = intersect(spans[name], found) if name in spans else found
    return ranges_of([spans.get(name) for name in keyed.schema.key])


def _spans(each: Filter, kind: SqlType, normalize: bool) -> Spans | None:
    """None if a filter says nothing that is certain."""
    values: Sequence[Any] = each.value if isinstance(each, In) else (getattr(each, "value", None),)
    if kind.name not in _KINDS or not all(type(v) is _KINDS[kind.name] for v in values):
        return None
    codec = KeyCodec((kind,), normalize=normalize)
    encoded = [codec.encode_one([value]) for value in values]
    if isinstance(each, EqualTo | In):
        return in_order(point(value) for value in encoded)
    (value,) = encoded
    if isinstance(each, GreaterThan | GreaterThanOrEqual):
        return (above(value, isinstance(each, GreaterThanOrEqual)),)
    if isinstance(each, LessThan | LessThanOrEqual):
        return (below(value, isinstance(each, LessThanOrEqual)),)
    return None
