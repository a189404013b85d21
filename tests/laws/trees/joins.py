"""FROM clauses: tables, views, subqueries and CTEs, joined in every way that has an equality.

Equalities are between columns of one type, or of two numeric types, at times with an expression on
one side or with <=>. There are keys, foreign keys and columns that are neither on both sides, as
the tables happen to have them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from tests.laws.domains import Table
from tests.laws.trees.scope import Field, Nested, Phrases, Query, Ref, Source

_NUMBERS = ("int", "bigint")
_KINDS = (
    *("JOIN", "JOIN", "INNER JOIN", "LEFT JOIN", "LEFT OUTER JOIN", "RIGHT JOIN"),
    *("FULL JOIN", "FULL OUTER JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"),
)
_AFTER_A_COMMA = [kind for kind in _KINDS if "RIGHT" not in kind and "FULL" not in kind]


@dataclass(frozen=True)
class From:
    """A FROM clause, what WHERE must say with it, and what the rest of the query can refer to."""

    text: str
    refs: tuple[Ref, ...]
    unique: tuple[str, ...] | None  # texts of references
    where: tuple[str, ...] = ()
    shapes: frozenset[str] = frozenset()


@dataclass
class Joining:
    """A FROM clause that grows."""

    text: str
    refs: list[Ref]
    unique: tuple[str, ...] | None
    where: list[str] = field(default_factory=list)
    shapes: set[str] = field(default_factory=set)


@dataclass
class Relations:
    """Writes FROM clauses.

    `below` makes a subquery; `names` are tables and views; CTEs are collected.
    """

    dice: Random
    names: Mapping[str, Query | Table]
    below: Callable[[int], Query]
    phrases: Phrases
    shared: int  # chance in percent that a subquery is one of the fragments
    number: int = 0
    ctes: dict[str, Query] = field(default_factory=dict)
    # subqueries of this and of earlier views, so that nodes are shared
    fragments: list[Query] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Parentheses have dice of their own, so that cases without any are the same as if there
        were none.
        """
        self.brackets = Phrases(Random(self.dice.getstate()[1][1]))

    def source(self, depth: int) -> Source:
        self.number += 1
        alias = f"r{self.number}"
        if depth > 0 and self.phrases.chance(60):
            return self._subquery(depth, alias)
        name = self.dice.choice(list(self.names))
        found = self.names[name]
        if isinstance(found, Query):
            return Source(
                f"{name} AS {alias}", alias, found.fields, found.unique, frozenset({"view on view"})
            )
        fields = tuple(Field(c.name, c.type, c.nullable) for c in found.schema.columns)
        return Source(
            f"{name} {self.dice.choice(['', 'AS '])}{alias}", alias, fields, found.schema.key
        )

    def _subquery(self, depth: int, alias: str) -> Source:
        if self.ctes and self.phrases.chance(40):
            name = self.dice.choice(list(self.ctes))
            query = self.ctes[name]
            return Source(
                f"{name} AS {alias}",
                alias,
                query.fields,
                query.unique,
                query.shapes | {"cte twice"},
            )
        if self.fragments and self.phrases.chance(self.shared):
            query = self.dice.choice(self.fragments)
            return Source(
                f"({query.text}) AS {alias}",
                alias,
                query.fields,
                query.unique,
                query.shapes | {"shared"},
            )
        query = self.below(depth - 1)
        if "cte" not in query.text and "view" not in query.text:
            self.fragments.append(query)
        if self.phrases.chance(25):
            name = f"cte{len(self.ctes)}"
            self.ctes[name] = query
            return Source(
                f"{name} AS {alias}", alias, query.fields, query.unique, query.shapes | {"cte"}
            )
        return Source(
            f"({query.text}) AS {alias}",
            alias,
            query.fields,
            query.unique,
            query.shapes | {"subquery"},
        )

    def clause(self, depth: int) -> From:
        first = self.source(depth)
        made = Joining(first.text, first.refs, _qualified(first), shapes=set(first.shapes))
        commas = self.dice.choice([", ", ", ", " CROSS JOIN "]) if self.phrases.chance(20) else ""
        for _ in range(self.dice.choice([0, 0, 0, 1, 1, 1, 1, 2])):
            if not commas and " JOIN " in made.text and self.brackets.chance(50):
                made.text = f"({made.text})"
                made.shapes.add("parentheses")
            right = self._again(first) if self.phrases.chance(15) else self._right(depth - 1)
            if {r.text for r in made.refs} & {f.name for f in right.fields}:
                continue  # the name of a USING would be ambiguous
            if commas:
                self._comma(made, right, commas, depth)
            else:
                self._join(made, right)
        names = self._short_names(made.refs) if self.phrases.chance(25) else {}
        refs = tuple(Ref(names.get(r.text, r.text), r.type, r.nullable) for r in made.refs)
        unique = (
            None if made.unique is None else tuple(names.get(text, text) for text in made.unique)
        )
        return From(made.text, refs, unique, tuple(made.where), frozenset(made.shapes))

    def _right(self, depth: int) -> Source:
        """A relation to join with; at times it is a join itself, in parentheses."""
        first = self.source(depth)
        if not self.brackets.chance(12):
            return first
        made = Joining(first.text, first.refs, _qualified(first), shapes=set(first.shapes))
        self._join(made, self.source(depth - 1))
        if made.text == first.text or any("." not in r.text for r in made.refs):
            return first
        return Nested(
            f"({made.text})",
            "",
            (),
            made.unique,
            frozenset({*made.shapes, "parentheses"}),
            tuple(made.refs),
        )

    def _short_names(self, refs: Sequence[Ref]) -> dict[str, str]:
        """References without the relation's name, where that says enough."""
        names = [r.text.split(".")[-1] for r in refs]
        return {r.text: name for r, name in zip(refs, names, strict=True) if names.count(name) == 1}

    def _again(self, first: Source) -> Source:
        """The same relation a second time: a self-join."""
        self.number += 1
        alias = f"r{self.number}"
        text = first.text.removesuffix(first.alias) + alias
        return Source(text, alias, first.fields, first.unique, first.shapes | {"self-join"})

    def _comma(self, made: Joining, source: Source, separator: str, depth: int) -> None:
        """One more relation in the list; a JOIN binds closer than a comma."""
        right = Joining(source.text, source.refs, _qualified(source), shapes=set(source.shapes))
        if separator == ", " and self.phrases.chance(20):
            self._join(right, self.source(depth - 1), _AFTER_A_COMMA)
        if any("." not in r.text for r in right.refs):
            return  # the name of a USING may be ambiguous in the whole list
        found = self.equalities(made.refs, right.refs)
        if not found:
            return
        made.where += found
        made.text += separator + right.text
        made.refs += right.refs
        made.unique = _both(made.unique, right.unique)
        made.shapes |= right.shapes | {"comma"}

    def _join(self, made: Joining, right: Source, kinds: Sequence[str] = _KINDS) -> None:
        kind = self.dice.choice(kinds)
        using = self._using(made, right)
        if using and self.phrases.chance(20):
            self._join_using(made, right, kind, using)
            return
        found = self.equalities(made.refs, right.refs)
        if not found:
            return
        if self.phrases.chance(20):
            found.append(self._extra(made.refs, right.refs))
        made.text += f" {kind} {right.text} ON {' AND '.join(found)}"
        self._after(made, right, kind, right.refs)

    def _using(self, made: Joining, right: Source) -> list[str]:
        """Names that exactly one relation on the left has, of the type that
        they have on the right.
        """
        names = [r.text.split(".")[-1] for r in made.refs]
        left = {r.text.split(".")[-1]: r.type for r in made.refs if "." in r.text}
        return [
            f.name for f in right.fields if names.count(f.name) == 1 and left.get(f.name) == f.type
        ]

    def _join_using(self, made: Joining, right: Source, kind: str, names: list[str]) -> None:
        name = self.dice.choice(names)
        made.text += f" {kind} {right.text} USING ({name})"
        kept = [r for r in right.refs if r.text != f"{right.alias}.{name}"]
        if "SEMI" not in kind and "ANTI" not in kind:
            merged = next(r for r in made.refs if r.text.endswith(f".{name}"))
            made.refs = [r for r in made.refs if r != merged] + [Ref(name, merged.type)]
            # the columns that make it unique are no longer there under their names
            made.unique = None
        self._after(made, right, kind, kept)
        made.shapes.add("using")

    def _after(self, made: Joining, right: Source, kind: str, refs: list[Ref]) -> None:
        words = (
            kind.replace("OUTER ", "")
            .replace("LEFT SEMI", "SEMI")
            .replace("LEFT ANTI", "ANTI")
            .split()
        )
        name = "inner" if words[0] in ("JOIN", "INNER") else words[0].lower()
        made.shapes |= right.shapes | {f"{name} join"}
        if name in ("semi", "anti"):
            return
        made.refs = [_optional(r) for r in made.refs] if name in ("right", "full") else made.refs
        made.refs = made.refs + [_optional(r) if name in ("left", "full") else r for r in refs]
        made.unique = None if name == "full" else _both(made.unique, _qualified(right))

    def equalities(self, left: Sequence[Ref], right: Sequence[Ref]) -> list[str]:
        pairs = [
            (a, b) for a in left for b in right if a.type == b.type and a.type.name != "boolean"
        ]
        if not pairs or self.phrases.chance(8):
            pairs += [
                (a, b)
                for a in left
                for b in right
                if a.type.name in _NUMBERS and b.type.name in _NUMBERS
            ]
        if not pairs:
            return []
        chosen = {self.dice.choice(pairs) for _ in range(self.dice.choice([1] * 8 + [2]))}
        return [
            self._equality(a, b) for a, b in sorted(chosen, key=lambda p: (p[0].text, p[1].text))
        ]

    def _equality(self, a: Ref, b: Ref) -> str:
        left, right = (b, a) if self.phrases.chance(30) else (a, b)
        sign = "<=>" if self.phrases.chance(10) else "="
        text = self.phrases.value([left], left.type) if self.phrases.chance(10) else left.text
        return f"{text} {sign} {right.text}"

    def _extra(self, left: Sequence[Ref], right: Sequence[Ref]) -> str:
        """A further condition of a join: of one side or of both."""
        two = self.phrases.two_sided(left, right)
        if two is not None and self.phrases.chance(50):
            return two
        # its constants are casts, which may raise
        plain = [r for r in self.dice.choice([left, right]) if r.type.name != "decimal"]
        return self.phrases.condition(plain) if plain else f"{right[0].text} IS NOT NULL"


def _optional(ref: Ref) -> Ref:
    return Ref(ref.text, ref.type)


def _qualified(source: Source) -> tuple[str, ...] | None:
    if isinstance(source, Nested):
        return source.unique
    return (
        None if source.unique is None else tuple(f"{source.alias}.{name}" for name in source.unique)
    )


def _both(left: tuple[str, ...] | None, right: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if left is None or right is None else left + right
