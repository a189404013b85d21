"""Columns of texts, as the server prints values, as Arrow; a text that is no value of the type
raises.
"""

from __future__ import annotations

from binascii import unhexlify

from belvedere.libraries import pa, pc
from belvedere.sources.postgres.columns import Wire
from belvedere.types import SqlType


def to_arrow(texts: pa.Array, wire: Wire, kind: SqlType) -> pa.Array:
    """Raises ArrowInvalid for a value that the type has not: infinity, a date before Christ, ..."""
    if kind.name == "boolean":
        return pc.starts_with(texts, b"t")  # t, or true where it was cast
    if kind.name == "binary":
        found = [None if text is None else unhexlify(text[2:]) for text in texts.to_pylist()]
        return pa.array(found, pa.binary())
    strings = texts.cast(pa.string())
    if wire.base == "float4":  # its value is that of four bytes, not the shortest text's
        return strings.cast(pa.float32()).cast(pa.float64())
    if wire.base == "timestamp":
        return strings.cast(pa.timestamp("us")).cast(kind.arrow)
    return strings.cast(kind.arrow)
