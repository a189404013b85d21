"""Plans as JSON, as the catalog keeps them, and the list of operators.

Plans are trees of frozen dataclasses; each is written with its class name, field by field. So the
names of registered classes and of their fields are a format: they stay.
"""

from __future__ import annotations

from dataclasses import Field, fields, is_dataclass
from typing import Any, TypeVar

from belvedere.errors import StoreError
from belvedere.graph.node import Node
from belvedere.operators.aggregate import Aggregate, Argument, Call
from belvedere.operators.arrange import Arrange
from belvedere.operators.base import Operator
from belvedere.operators.join import Join
from belvedere.operators.select import Expression, Select
from belvedere.operators.set_operation import SetOperation
from belvedere.operators.sinks import BagSink, KeyedSink
from belvedere.operators.source import Source
from belvedere.operators.topk import TopK
from belvedere.types import SqlType

T = TypeVar("T")

_KINDS: dict[str, Any] = {}


def register(kind: type[T]) -> type[T]:
    """Make an operator, or a value inside of one, known to the catalog by its class name.

    To be called in every process that opens the database, before that.
    """
    if not is_dataclass(kind):
        raise TypeError(f"{kind.__name__} must be a dataclass: it is stored field by field")
    known = _KINDS.setdefault(kind.__name__, kind)
    if known is not kind:
        raise TypeError(
            f"the name {kind.__name__} is taken by {known.__module__}: choose another one, it is"
            " stored in the catalog"
        )
    return kind


def registered_operators() -> tuple[type[Operator], ...]:
    return tuple(kind for kind in _KINDS.values() if issubclass(kind, Operator))


for _kind in (
    *(Source, Select, Aggregate, Arrange, Join, TopK, SetOperation, KeyedSink, BagSink),
    *(Node, Expression, Argument, Call, SqlType),
):
    register(_kind)


def to_json(value: Any) -> Any:
    if is_dataclass(value):
        return {
            "is": type(value).__name__,
            **{
                f.name: to_json(getattr(value, f.name)) for f in fields(value) if _is_kept(value, f)
            },
        }
    if isinstance(value, tuple):
        return [to_json(v) for v in value]
    return value


def _is_kept(value: Any, each: Field[Any]) -> bool:
    """Whether a field is written: one that came later only if it says something."""
    return not each.metadata.get("came_later") or getattr(value, each.name) != each.default


def from_json(value: Any) -> Any:
    if isinstance(value, dict):
        kind = _kind_of(value["is"])
        return kind(**{k: from_json(v) for k, v in value.items() if k != "is"})
    if isinstance(value, list):
        return tuple(from_json(v) for v in value)
    return value


def _kind_of(name: str) -> Any:
    if name not in _KINDS:
        raise StoreError(
            f"the catalog speaks of an operator {name!r}, which this program does not know: if it"
            " is one of yours, register it (belvedere.graph.register) before you open the"
            " database; if not, a newer version wrote it, or the store is damaged there"
        )
    return _KINDS[name]
