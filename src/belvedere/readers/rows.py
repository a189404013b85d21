"""Records of a view as rows: keys and values decoded, columns in the order of the view's SELECT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from belvedere.encoding import KeyCodec, RowCodec
from belvedere.errors import SchemaError
from belvedere.operators.sinks import BagSink, KeyedSink, counts_of, key_codec, row_codec
from belvedere.types import Key, Row, Schema
from belvedere.views.definitions import ViewDefinition


@dataclass(frozen=True)
class ViewRows:
    """How the records of one view are read."""

    name: str
    schema: Schema
    sink: KeyedSink | BagSink

    @classmethod
    def of(cls, view: ViewDefinition) -> ViewRows:
        return cls(view.name, view.schema, view.planned.sink)

    @cached_property
    def _order(self) -> tuple[int, ...]:
        return self.sink.key if isinstance(self.sink, KeyedSink) else self.sink.order

    @cached_property
    def keys(self) -> KeyCodec:
        return key_codec(self.sink.types, self._order)

    @cached_property
    def values(self) -> RowCodec | None:
        return row_codec(self.sink.types, self.sink.value) if isinstance(self.sink, KeyedSink) and self.sink.value else None

    def prefix(self, values: Sequence[Any]) -> bytes:
        if len(values) > len(self._order):
            raise SchemaError(f"view {self.name} has {len(self._order)} key column(s): {', '.join(self.schema.key) or 'none'}")
        return self.keys.encode_one(values)

    def decode(self, keys: pa.BinaryArray, values: pa.BinaryArray) -> pa.Table:
        """Rows of some records; a counted row stands as often as it counts."""
        found = dict(zip(self._order, self.keys.decode(keys), strict=True)) if self._order else {}
        if isinstance(self.sink, BagSink):
            times = pa.array(np.repeat(np.arange(len(keys)), counts_of(values)))
            found = {i: column.take(times) for i, column in found.items()}
        elif self.values is not None:
            found |= dict(zip(self.sink.value, self.values.decode(values), strict=True))
        return pa.table([found[i] for i in range(len(self.schema.columns))], schema=self.schema.arrow)

    @cached_property
    def decode_one(self) -> Callable[[Sequence[Any], bytes], Row]:
        """One row of a keyed view from its key values and its record; made once, because point reads are frequent."""
        names = self.schema.names
        key_names = tuple(names[i] for i in self._order)
        if not isinstance(self.sink, KeyedSink):
            raise SchemaError(f"view {self.name} has no key of its own: use scan()")
        if self.values is None:
            return lambda key, _: dict(zip(key_names, key, strict=True))
        value_names = tuple(names[i] for i in self.sink.value)
        decode = self.values.decode_one
        if (*key_names, *value_names) == names:
            return lambda key, value: dict(zip(names, (*key, *decode(value)), strict=True))

        def ordered(key: Sequence[Any], value: bytes) -> Row:
            found = dict(zip((*key_names, *value_names), (*key, *decode(value)), strict=True))
            return {name: found[name] for name in names}

        return ordered


def key_tuple(key: Key) -> tuple[Any, ...]:
    """Keys of one column are given as a scalar, of several as a tuple."""
    return tuple(key) if isinstance(key, tuple | list) else (key,)
