"""The columns that a query can name, and those of the query around it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from belvedere.sql.front.binding import Field, field_of, no_such_column, spelled, text_of
from belvedere.sql.front.purpose import Purpose


@dataclass(frozen=True, slots=True)
class Names:
    """`beside` are relations before a subquery in FROM: Spark sees them only with LATERAL."""

    fields: tuple[Field, ...]
    purpose: Purpose
    outer: Names | None = None
    beside: Names | None = None

    def find(self, column: exp.Column) -> exp.Expr:
        """The bound form of a column."""
        found = self.found(column)
        if found is not None:
            return found
        if self.beside is not None and field_of(self.beside.fields, column) is not None:
            raise self.purpose.refused(
                f"a subquery in FROM that refers to {spelled(column)} beside it",
                "say in ON which rows belong together",
            )
        raise no_such_column(column, self.fields)

    def found(self, column: exp.Column) -> exp.Expr | None:
        if isinstance(column.this, exp.Star):
            construct = f"{text_of(column)} inside an expression"
            raise self.purpose.refused(construct, "list the columns")
        field = field_of(self.fields, column)
        if field is not None:
            return field.bound
        return self.outer.found(column) if self.outer else None

    def labels(self) -> Mapping[str, str]:
        """The users' words for bound columns: the bare name where that is enough."""
        around = self.outer.fields if self.outer else ()
        count = Counter(f.name.lower() for f in (*self.fields, *around) if f.visible)
        return {
            f.text: text_of(_written(f, not f.visible or count[f.name.lower()] != 1))
            for f in self.fields
        }

    def nameable(self) -> list[tuple[exp.Expr, str]]:
        """Columns as they can be written in the query, each with its bound text."""
        full = Counter((f.relation.lower(), f.name.lower()) for f in self.fields)
        bare = Counter(f.name.lower() for f in self.fields)
        once = [
            f
            for f in self.fields
            if (full[f.relation.lower(), f.name.lower()] if f.relation else bare[f.name.lower()])
            == 1
        ]
        return [(_written(f, bool(f.relation)), f.text) for f in once]


def _written(field: Field, qualified: bool) -> exp.Expr:
    relation = field.relation if qualified else ""
    return exp.column(field.name, table=relation or None)
