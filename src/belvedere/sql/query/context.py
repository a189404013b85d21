"""What every part of a query's translation shares: the relations in sight, fresh names, and the way
back to the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from sqlglot import exp

from belvedere.errors import SqlError
from belvedere.sql.binding import BOUND
from belvedere.sql.query.stage import Output, Relation, Stage
from belvedere.types import Schema


@dataclass(frozen=True, slots=True)
class Context:
    schemas: Mapping[str, Schema]  # by lower-case name
    answer: Callable[[exp.Expr, Context], Relation]
    numbers: count[int] = field(default_factory=count)
    # definitions of common table expressions, in their order
    hoisted: list[str] = field(default_factory=list)
    # the user's names of bound columns, for messages
    labels: dict[str, str] = field(default_factory=dict)
    ctes: Mapping[str, Relation] = field(default_factory=dict)
    outer: Stage | None = None

    def fresh(self, prefix: str) -> str:
        return f"{prefix}{next(self.numbers)}"

    def key(self, label: str) -> str:
        """A new key of a column that the user calls `label`."""
        key = self.fresh("f")
        self.labels[f"{BOUND}.{key}"] = label
        return key

    def inside(self, stage: Stage) -> Context:
        """The context of a subquery in an expression over `stage`."""
        return replace(self, outer=stage)

    def relation(self, name: str) -> Relation:
        lowered = name.lower()
        if lowered in self.ctes:
            return self.ctes[lowered]
        if lowered not in self.schemas:
            raise SqlError(
                f"there is no table or view {name}: SHOW TABLES and SHOW VIEWS list them"
            )
        outputs = tuple(
            Output(c.name, c.type, quoted(c.name)) for c in self.schemas[lowered].columns
        )
        return Relation(quoted(relation_name(name)), outputs, is_table=True)

    def with_cte(self, name: str, relation: Relation) -> Context:
        """`relation` under a name that the rest of the query sees; DuckDB decides whether to
        compute it once.
        """
        alias = self.fresh("cte")
        self.hoisted.append(f"{alias} AS ({relation.text})")
        return replace(
            self, ctes={**self.ctes, name.lower(): Relation(alias, relation.outputs, is_table=True)}
        )


def relation_name(name: str) -> str:
    """What a table or view is called in DuckDB."""
    return f"rel_{name.lower()}"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
