"""Random trees of queries: SELECTs over FROM clauses, subqueries in WHERE, aggregates, top-k, set
operations.

A query of depth d may hold queries of depth d - 1 in its FROM, in its WHERE and beside a set
operation. All names that it gives are new, so that a name never means two things.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from belvedere.types import BIGINT, DOUBLE, INT, SqlType, decimal
from tests.laws.domains import Table
from tests.laws.trees.joins import From, Relations
from tests.laws.trees.scope import RAISING, Field, Phrases, Query, Ref

_WIDEST_SUM = 28
_SETS = (
    "UNION ALL",
    "UNION ALL",
    "UNION",
    "INTERSECT",
    "INTERSECT ALL",
    "EXCEPT",
    "EXCEPT ALL",
    "MINUS",
)
_TOPS = (
    "rows",
    "rows",
    "rows",
    "distinct",
    "grouped",
    "grouped",
    "grouped",
    "global",
    "top-k",
    "limit",
)


class Trees:
    """Writes queries over some tables and views. `first` is the first number for column names."""

    def __init__(
        self,
        dice: Random,
        names: Mapping[str, Query | Table],
        fragments: list[Query],
        first: int = 0,
        raising: bool = False,
        tops: bool = True,
        shared: int = 25,
    ) -> None:
        self.dice, self.raising = dice, raising
        self.phrases = Phrases(dice)
        self.relations = Relations(
            dice, names, self.query, self.phrases, shared, fragments=fragments
        )
        self.tops = _TOPS if tops else _TOPS[:-2]
        self.number = first

    def view(self, depth: int) -> Query:
        """A whole view: with its CTEs, and with averages, which nothing else may look at because
        they are rounded.
        """
        made = self.query(depth, outermost=True)
        if not self.relations.ctes:
            return made
        ctes = ", ".join(f"{name} AS ({query.text})" for name, query in self.relations.ctes.items())
        return Query(f"WITH {ctes} {made.text}", made.fields, made.unique, made.shape, made.shapes)

    def query(self, depth: int, outermost: bool = False) -> Query:
        if depth > 0 and self.phrases.chance(18):
            return self._set_operation(depth)
        return self._select(depth, None, outermost)

    def _select(
        self, depth: int, types: Sequence[SqlType] | None, outermost: bool = False
    ) -> Query:
        """A SELECT; with `types` its columns have these."""
        found = self.relations.clause(depth)
        where = list(found.where)
        if self.phrases.chance(15):
            where.append(self.phrases.condition(found.refs))
        if depth > 0 and self.phrases.chance(20):
            where.append(self._subquery_condition(found, depth))
        found = From(
            found.text, found.refs, found.unique, tuple(where), found.shapes | _words(where)
        )
        top = self.dice.choice(self.tops)
        if top in ("top-k", "limit") and found.unique is None and self.phrases.chance(85):
            top = "rows"  # the order could not be made total
        if types is not None:
            return self._rows(found, types, distinct=self.phrases.chance(10))
        if top in ("grouped", "global"):
            return self._grouped(found, top == "grouped", outermost)
        if top == "top-k":
            return self._top_k(found)
        if top == "limit":
            return self._limited(self._rows(found), found)
        return self._rows(found, distinct=top == "distinct")

    # ---------------------------------------------------------------- rows

    def _rows(
        self, found: From, types: Sequence[SqlType] | None = None, distinct: bool = False
    ) -> Query:
        if (
            types is None
            and not distinct
            and self.phrases.chance(8)
            and (star := _star(found)) is not None
        ):
            return star
        items = self._items(found, types)
        fields = tuple(f for _, f in items)
        unique = tuple(f.name for f in fields) if distinct else _kept(found, items)
        shape = "distinct" if distinct else "rows"
        text = f"SELECT {'DISTINCT ' if distinct else ''}{_listed(items)}{_rest(found)}"
        return Query(text, fields, unique, shape, found.shapes | {shape})

    def _items(
        self, found: From, types: Sequence[SqlType] | None = None
    ) -> list[tuple[str, Field]]:
        if types is not None:
            return [self._item(found.refs, kind) for kind in types]
        count = self.dice.randint(1, min(4, len(found.refs)))
        items = [self._item([ref], ref.type) for ref in self.dice.sample(found.refs, count)]
        if found.unique and self.phrases.chance(50):
            shown = {text for text, _ in items}
            items += [
                self._plain(ref)
                for ref in found.refs
                if ref.text in found.unique and ref.text not in shown
            ]
        ints = [r for r in found.refs if r.type == INT]
        if self.raising and ints and self.phrases.chance(30):
            items.append((f"{RAISING}{self.dice.choice(ints).text}", Field(self._name(), DOUBLE)))
        return items

    def _item(self, refs: Sequence[Ref], kind: SqlType) -> tuple[str, Field]:
        return self.phrases.value(refs, kind), Field(self._name(), kind)

    def _plain(self, ref: Ref) -> tuple[str, Field]:
        return ref.text, Field(self._name(), ref.type, ref.nullable)

    def _name(self) -> str:
        self.number += 1
        return f"e{self.number}"

    # ---------------------------------------------------------------- aggregates

    def _grouped(self, found: From, by_group: bool, outermost: bool) -> Query:
        groups = (
            self.dice.sample(found.refs, min(len(found.refs), self.dice.choice([1, 1, 2])))
            if by_group
            else []
        )
        shown = [self._plain(ref) for ref in groups]
        calls = [self._call(found.refs, outermost) for _ in range(self.dice.choice([1, 1, 2]))]
        by = f" GROUP BY {', '.join(r.text for r in groups)}" if groups else ""
        having = f" HAVING {self._having(found.refs)}" if self.phrases.chance(20) else ""
        if groups and self.phrases.chance(10):
            shown = shown[1:]
        items = [*shown, *calls]
        unique = tuple(f.name for _, f in shown) if len(shown) == len(groups) else None
        shape = "grouped" if groups else "global"
        made = Query(
            f"SELECT {_listed(items)}{_rest(found)}{by}{having}",
            tuple(f for _, f in items),
            unique,
            shape,
            found.shapes | {shape},
        )
        if groups and len(self.tops) == len(_TOPS) and self.phrases.chance(12):
            return self._limited_groups(made, shown, calls)
        return made

    def _limited_groups(
        self, made: Query, shown: list[tuple[str, Field]], calls: list[tuple[str, Field]]
    ) -> Query:
        order = [self._ordered(f.name) for _, f in [calls[0], *shown] if not _rounded(calls[0][0])]
        if not order:
            return made
        text = f"{made.text} ORDER BY {', '.join(order)} LIMIT {self.dice.randint(1, 3)}"
        return Query(text, made.fields, made.unique, "limit", made.shapes | {"limit"})

    def _call(self, refs: Sequence[Ref], outermost: bool) -> tuple[str, Field]:
        name = self.dice.choice(
            [
                "count(*)",
                "count",
                "sum",
                "sum",
                "min",
                "max",
                "distinct",
                *(["avg"] if outermost else []),
            ]
        )
        numbers = [r for r in refs if r.type.name in ("int", "bigint", "double")]
        if name == "sum":
            numbers += [
                r for r in refs if r.type.name == "decimal" and r.type.precision <= _WIDEST_SUM
            ]
        if name in ("sum", "avg") and not numbers:
            name = "count"
        ref = self.dice.choice(numbers if name in ("sum", "avg") else list(refs))
        text = {"count(*)": name, "distinct": f"count(DISTINCT {ref.text})"}.get(
            name, f"{name}({ref.text})"
        )
        if self.phrases.chance(10):
            text += f" FILTER (WHERE {self.phrases.condition(refs)})"
        return text, Field(self._name(), _result_type(name, ref.type))

    def _having(self, refs: Sequence[Ref]) -> str:
        ref = self.dice.choice(refs).text
        choices = [
            "count(*) > 1",
            "count(*) < 3",
            f"count(DISTINCT {ref}) >= 2",
            f"min({ref}) IS NOT NULL",
            f"max({ref}) IS NULL",
        ]
        return self.dice.choice(choices)

    # ---------------------------------------------------------------- top-k

    def _ordered(self, text: str) -> str:
        return text + self.dice.choice(
            ["", "", " ASC", " DESC", " DESC", " NULLS LAST", " DESC NULLS FIRST"]
        )

    def _order(self, found: From) -> str:
        """Columns to order by, mostly with those that make the order total; else ties are broken by
        what identifies a row.
        """
        keys = [
            self._ordered(r.text)
            for r in self.dice.sample(found.refs, min(len(found.refs), self.dice.choice([1, 1, 2])))
        ]
        if found.unique and self.phrases.chance(60):
            keys += [self._ordered(text) for text in found.unique]
        return ", ".join(keys)

    def _top_k(self, found: From) -> Query:
        groups = [
            r.text
            for r in self.dice.sample(
                found.refs, min(len(found.refs), self.dice.choice([0, 1, 1, 1, 2]))
            )
        ]
        partition = f"PARTITION BY {', '.join(groups)} " if groups else ""
        window = f"ROW_NUMBER() OVER ({partition}ORDER BY {self._order(found)})"
        limit = self.dice.randint(1, 3)
        items = self._items(found)
        shapes = found.shapes | {"top-k"}
        fields, unique = tuple(f for _, f in items), _kept(found, items)
        if self.phrases.chance(30):
            return Query(
                f"SELECT {_listed(items)}{_rest(found)} QUALIFY {window} <= {limit}",
                fields,
                unique,
                "top-k",
                shapes,
            )
        rank, alias = Field(self._name(), INT), f"q{self.number}"
        inner = f"SELECT {_listed(items)}, {window} AS {rank.name}{_rest(found)}"
        if self.phrases.chance(40):
            fields, shapes = (*fields, rank), shapes | {"rank"}
        test = self.dice.choice(
            [
                f"{rank.name} <= {limit}",
                f"{rank.name} < {limit + 1}",
                f"{limit} >= {rank.name}",
                f"{rank.name} = 1",
            ]
        )
        if self.phrases.chance(15):
            test += (
                f" AND {self.phrases.condition([Ref(f.name, f.type) for f in fields if f != rank])}"
            )
        return Query(
            f"SELECT {', '.join(f.name for f in fields)} FROM ({inner}) AS {alias} WHERE {test}",
            fields,
            unique,
            "top-k",
            shapes,
        )

    def _limited(self, made: Query, found: From) -> Query:
        text = f"{made.text} ORDER BY {self._order(found)} LIMIT {self.dice.randint(1, 4)}"
        return Query(text, made.fields, made.unique, "limit", made.shapes | {"limit"})

    # ---------------------------------------------------------------- set operations

    def _set_operation(self, depth: int) -> Query:
        word = self.dice.choice(_SETS)
        left = self._left(depth - 1)
        right = self._select(depth - 1, [_narrowed(self, t) for t in left.types])
        sides = [self._side(left), self._side(right)]
        unique = None if word.endswith("ALL") else tuple(f.name for f in left.fields)
        shapes = left.shapes | right.shapes | {word.lower()}
        text = f" {word} ".join(sides)
        fields = tuple(Field(f.name, f.type) for f in left.fields)
        if unique and len(self.tops) == len(_TOPS) and self.phrases.chance(10):
            text += (
                f" ORDER BY {', '.join(self._ordered(name) for name in unique)} LIMIT"
                f" {self.dice.randint(1, 4)}"
            )
            shapes |= {"limit"}
        return Query(text, fields, unique, word.lower(), shapes)

    def _left(self, depth: int) -> Query:
        """The first side: mostly so few columns that the other side has some of the same rows."""
        if self.phrases.chance(60):
            tables = [t for t in self.relations.names.values() if isinstance(t, Table)]
            columns = self.dice.choice(tables).schema.columns
            return self._select(
                depth, [self.dice.choice(columns).type for _ in range(self.dice.choice([1, 1, 2]))]
            )
        return self._select(depth, None) if self.phrases.chance(70) else self.query(depth)

    def _side(self, query: Query) -> str:
        """A side of a set operation, in parentheses where it has an end of its own."""
        plain = query.shape in ("rows", "distinct", "grouped", "global")
        return query.text if plain else f"({query.text})"

    # ---------------------------------------------------------------- subqueries in WHERE

    def _subquery_condition(self, found: From, depth: int) -> str:
        if self.phrases.chance(50):
            return self._in(found, depth)
        inner = self.relations.source(depth - 1)
        # the name of a USING could be taken for one of the inner relation
        outer = [r for r in found.refs if "." in r.text]
        equal = self.relations.equalities(outer, inner.refs)
        if not equal:
            return self._in(found, depth)
        tests = [*equal]
        if self.phrases.chance(30):
            tests.append(self.phrases.condition(inner.refs))
        two = self.phrases.two_sided(outer, inner.refs)
        if two is not None and self.phrases.chance(20):
            tests.append(two)
        where = " AND ".join(tests)
        keys = [
            (a, b)
            for a in outer
            for b in inner.refs
            if a.type == b.type and not a.nullable and not b.nullable
        ]
        if keys and self.phrases.chance(25):
            a, b = self.dice.choice(keys)
            return (
                f"{a.text} {self.dice.choice(['IN', 'NOT IN'])} (SELECT {b.text} FROM {inner.text}"
                f" WHERE {where})"
            )
        return f"{self.dice.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {inner.text} WHERE {where})"

    def _in(self, found: From, depth: int) -> str:
        word = self.dice.choice(["IN", "IN", "NOT IN"])
        refs = self.dice.sample(
            found.refs, min(len(found.refs), 2 if word == "IN" and self.phrases.chance(15) else 1)
        )
        inner = self._select(depth - 1, [r.type for r in refs])
        left = refs[0].text if len(refs) == 1 else f"({', '.join(r.text for r in refs)})"
        return f"{left} {word} ({inner.text})"


def _narrowed(trees: Trees, kind: SqlType) -> SqlType:
    """At times the other side of a set operation has a narrower type, which is widened."""
    return INT if kind == BIGINT and trees.phrases.chance(20) else kind


def _result_type(function: str, kind: SqlType) -> SqlType:
    if function in ("min", "max"):
        return kind
    if function == "avg" or (function == "sum" and kind == DOUBLE):
        return DOUBLE
    return (
        decimal(kind.precision + 10, kind.scale)
        if function == "sum" and kind.name == "decimal"
        else BIGINT
    )


def _rounded(text: str) -> bool:
    return text.startswith("avg")


def _listed(items: Sequence[tuple[str, Field]]) -> str:
    return ", ".join(f"{text} AS {f.name}" for text, f in items)


def _rest(found: From) -> str:
    return f" FROM {found.text}" + (f" WHERE {' AND '.join(found.where)}" if found.where else "")


def _kept(found: From, items: Sequence[tuple[str, Field]]) -> tuple[str, ...] | None:
    """The names under which the columns that make rows unique are shown, if all of them are."""
    shown = {text: f.name for text, f in reversed(items)}
    return (
        tuple(shown[text] for text in found.unique)
        if found.unique is not None and all(t in shown for t in found.unique)
        else None
    )


def _star(found: From) -> Query | None:
    """All columns, if no two have the same name."""
    items = [(r.text, Field(r.text.split(".")[-1], r.type, r.nullable)) for r in found.refs]
    fields = tuple(f for _, f in items)
    if len({f.name for f in fields}) < len(fields) or "using" in found.shapes:
        return None
    return Query(
        f"SELECT *{_rest(found)}",
        fields,
        _kept(found, items),
        "rows",
        found.shapes | {"rows", "star"},
    )


def _words(where: Sequence[str]) -> frozenset[str]:
    text = " ".join(where)
    found = {
        "exists": "EXISTS (",
        "not exists": "NOT EXISTS (",
        "in": " IN (SELECT",
        "not in": " NOT IN (SELECT",
    }
    return frozenset(name for name, word in found.items() if word in text)
