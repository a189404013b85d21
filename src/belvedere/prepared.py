"""Statements that were planned before: SELECTs of the row under a key that parameters give.

    db.sql("SELECT name FROM t WHERE id = ?", [7])

The first run plans it. The next ones, while the definitions are the same, encode the values and
read the row, and do not look into the text. Only values of the key's own types are encoded here,
because for them equal in SQL is equal in bytes; with any other value the statement is planned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from belvedere.encoding import KeyCodec
from belvedere.errors import SchemaError
from belvedere.readers.lookups import Bound, RowLookup
from belvedere.sql.parameters import Place
from belvedere.sql.query import Direct
from belvedere.types import SqlType

if TYPE_CHECKING:
    from belvedere.database import Database

_MOST = 1000  # statements: a program has fewer texts, unless it writes values into them
_OWN: dict[str, type[Any]] = {
    "boolean": bool,
    "int": int,
    "bigint": int,
    "double": float,
    "string": str,
    "binary": bytes,
    "date": date,
    "timestamp": datetime,
}
# the encoding of a column, from the parameters; None if it is not known how
_Part: TypeAlias = "Callable[[Sequence[Any] | Mapping[str, Any]], bytes | None]"


@dataclass(frozen=True, slots=True)
class Prepared:
    """How the row is read, and its key made of so many parameters, which are named or listed."""

    lookup: RowLookup
    parts: tuple[_Part, ...]
    parameters: int
    are_named: bool

    def key(self, params: object) -> Bound | None:
        """The key for these parameters; None if the statement has to be planned for them."""
        is_right = isinstance(params, dict) if self.are_named else isinstance(params, list | tuple)
        if not is_right or len(params) != self.parameters:  # type: ignore[arg-type]  # it has a length
            return None
        key: list[bytes] = []
        for part in self.parts:
            encoded = part(params)  # type: ignore[arg-type]  # it is of the right kind
            if encoded is None:
                return None
            key.append(encoded)
        return key


# by their texts, of one database; threads may read and write them at the same time
PreparedStatements: TypeAlias = dict[str, Prepared]


def find_prepared(db: Database, text: object) -> Prepared | None:
    """What was prepared for a text, if it is still good for the definitions as they are now."""
    found = db.prepared.get(text.strip()) if isinstance(text, str) else None
    if found is None or found.lookup.store is not db.store or found.lookup.state is not db.state():
        return None
    return found


def keep_prepared(db: Database, text: str, prepared: Prepared) -> None:
    if len(db.prepared) >= _MOST:
        db.prepared.clear()
    db.prepared[text] = prepared


def prepare(
    direct: Direct, lookup: RowLookup, places: Sequence[Place | None], parameters: int
) -> Prepared | None:
    """A query of one key, if all parameters are in `places`: those of the key's columns, in order,
    and None for columns that are constants.
    """
    given = {place for place in places if place is not None}
    if direct.key is None or not given or len(given) < parameters:
        return None
    kinds = [column.type for column in direct.keyed.schema.key_columns]
    parts = [
        _constant(encoded) if place is None else _given(place, kind, direct.keyed.normalize)
        for encoded, place, kind in zip(direct.key, places, kinds, strict=True)
    ]
    return Prepared(lookup, tuple(parts), parameters, isinstance(next(iter(given)), str))


def _constant(encoded: bytes) -> _Part:
    return lambda params: encoded


def _given(place: Place, kind: SqlType, normalize: bool) -> _Part:
    own, encode = _OWN.get(kind.name), KeyCodec((kind,), normalize).encode_one

    def part(params: Any) -> bytes | None:
        try:
            value = params[place]
        except KeyError:
            return None
        is_zero = own is float and value == 0  # which has two encodings, if there is no normalize
        if type(value) is not own or is_zero:
            return None
        try:
            return encode((value,))
        except SchemaError:  # beyond the range of the type, or no Unicode
            return None

    return part
