"""Source: changes of a base table, netted per row and partitioned by the table's key.

It computes nothing: the engine reads the log for it (`epochs/source.py`). Its one input is the base
table itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from belvedere.operators.base import Identity, NewId, Operator, StateTable, Wording
from belvedere.operators.lineage import Below, Gap, Pieces, Wanted
from belvedere.stores.base import TableId
from belvedere.types import SqlType


@dataclass(frozen=True, slots=True)
class Source(Operator):
    table: int  # the base table's id: not a state table
    types: tuple[SqlType, ...]

    @property
    def base_table(self) -> TableId:
        return self.table

    def tables(self) -> tuple[StateTable, ...]:
        return ()

    def with_tables(self, new_id: NewId) -> Source:
        return self

    def explain(self, words: Wording) -> str:
        return f"changes of {words.table}"

    def columns(self, inputs: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        return inputs[0]

    def identify(self, inputs: Sequence[Identity]) -> Identity:
        return inputs[0]

    # its rows are those of the base table: here every explanation ends

    @property
    def grows(self) -> bool:
        return True

    def sought(self, wanted: Wanted) -> tuple[Wanted | None, ...]:
        return (wanted,)

    def made_of(self, made: Pieces, below: Below) -> tuple[Pieces, ...]:
        return ()

    def why_not(self, wanted: Wanted, below: Below) -> Gap:
        said = wanted.text(below.names(0))
        return Gap(f"no row with {said}" if said else "there are no rows")
