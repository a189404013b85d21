"""What a query can refer to, and expressions over it that mean the same in Spark and in DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from belvedere.types import SqlType
from tests.laws.domains import literals

RAISING = "10 / "  # the one expression that may raise: its text marks a query that can be in error
_COMPARISONS = ("=", "<>", "<>", "<", "<=", ">", ">=", "<=>")
_TEMPLATES = {
    "int": ["{} + 1", "coalesce({}, 0)", "CASE WHEN {} > 0 THEN {} ELSE 0 END", "{} * 2", "-({})"],
    "bigint": ["coalesce({}, 0L)", "{} + 1", "if({} > 1, {}, 2L)"],
    "double": ["coalesce({}, 0.5D)", "{} * 2"],
    "string": ["coalesce({}, 'a')", "{} || 'b'", "CASE WHEN {} = 'a' THEN 'b' ELSE {} END"],
    "date": ["coalesce({}, DATE '2024-02-20')"],
    "boolean": ["NOT {}", "coalesce({}, TRUE)", "{} IS NULL"],
}


@dataclass(frozen=True)
class Field:
    """A column of a query's result."""

    name: str
    type: SqlType
    nullable: bool = True


@dataclass(frozen=True)
class Ref:
    """A column as an expression names it."""

    text: str
    type: SqlType
    nullable: bool = True


@dataclass(frozen=True)
class Query:
    """A SELECT, its columns, and which of them make its rows unique (None: not known)."""

    text: str
    fields: tuple[Field, ...]
    unique: tuple[str, ...] | None
    shape: str = ""
    shapes: frozenset[str] = frozenset()

    @property
    def types(self) -> tuple[SqlType, ...]:
        return tuple(f.type for f in self.fields)


@dataclass(frozen=True)
class Source:
    """A relation in FROM: its text with the alias, and its columns."""

    text: str
    alias: str
    fields: tuple[Field, ...]
    unique: tuple[str, ...] | None
    shapes: frozenset[str] = frozenset()

    @property
    def refs(self) -> list[Ref]:
        return [Ref(f"{self.alias}.{f.name}", f.type, f.nullable) for f in self.fields]


@dataclass(frozen=True)
class Nested(Source):
    """A join in parentheses: its columns are those of its relations, and `unique` has them with
    their relations' names.
    """

    inner: tuple[Ref, ...] = ()

    @property
    def refs(self) -> list[Ref]:
        return list(self.inner)


class Phrases:
    """Writes expressions and conditions over references."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice

    def chance(self, percent: int) -> bool:
        return self.dice.randrange(100) < percent

    def value(self, refs: Sequence[Ref], kind: SqlType) -> str:
        """An expression of a type: mostly a column, else something computed, else a constant."""
        found = [r for r in refs if r.type == kind]
        if not found:
            return literal(self.dice, kind)
        text = self.dice.choice(found).text
        if self.chance(25) and kind.name in _TEMPLATES:
            return self.dice.choice(_TEMPLATES[kind.name]).replace("{}", text)
        return text

    def condition(self, refs: Sequence[Ref]) -> str:
        """A condition that cannot raise."""
        first = self._atom(refs)
        if not self.chance(25):
            return first
        return self.dice.choice(
            [
                f"({first} OR {self._atom(refs)})",
                f"NOT ({first})",
                f"{first} AND {self._atom(refs)}",
            ]
        )

    def _atom(self, refs: Sequence[Ref]) -> str:
        ref = self.dice.choice(refs)
        if self.chance(20):
            return f"{ref.text} IS {self.dice.choice(['', 'NOT '])}NULL"
        others = [r for r in refs if r.type == ref.type and r != ref]
        other = (
            self.dice.choice(others).text
            if others and self.chance(50)
            else literal(self.dice, ref.type)
        )
        if self.chance(15):
            return f"{ref.text} IN ({other}, {literal(self.dice, ref.type)})"
        return f"{ref.text} {self.dice.choice(_COMPARISONS)} {other}"

    def two_sided(self, left: Sequence[Ref], right: Sequence[Ref]) -> str | None:
        """A comparison between two relations that is no equality."""
        pairs = [(a, b) for a in left for b in right if a.type == b.type]
        if not pairs:
            return None
        a, b = self.dice.choice(pairs)
        return f"{a.text} {self.dice.choice(['<', '<=', '<>', '>'])} {b.text}"


def literal(dice: Random, kind: SqlType) -> str:
    if kind.name == "decimal":
        return f"CAST({dice.choice(['0', '1.5'])} AS {kind})"
    return dice.choice(literals(kind.name)[:2])
