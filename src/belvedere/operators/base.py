"""The contract of operators: what they speak, and all that the engine asks of them.

Changes are an Arrow table with the columns `c0`, `c1`, ... of the rows and

    _w    int64    the weight: +1 a row appears, -1 a row disappears
    _id   binary   the identity of what the row stands for: the encoded base key, or the group key
                   after an aggregate

As of any epoch a relation has at most one row per identity. In one epoch an identity has at most
one change of weight -1, which is exactly what was emitted before, and at most one of weight +1.
Identities are prefix-free codes, so those of a join are put together.

An operator is a frozen dataclass that plays one of these roles; the engine asks for the role, never
for the class:

    Operator       whatever stands in a graph: what it keeps, what it emits, how it is explained
    ├── Stateless  maps changes to changes
    └── Stateful   works in two halves, so that work can be combined before it travels (and after)
        ├── ViewTable  keeps a view as readers see it
        └── Origin     its rows can be read from its state, so views that come later load from it
            └── Derived    keeps nothing itself: it reads what its inputs keep

A class is made known to the catalog by `graph.register`; docs/plug-ins.md shows one from outside.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Self, TypeAlias

from belvedere.encoding.arrays import Ints
from belvedere.libraries import pa
from belvedere.operators.lineage import EVERYTHING, Below, Gap, Pieces, Wanted
from belvedere.stores.base import Shard, TableId
from belvedere.types import SqlType

WEIGHT = "_w"
ID = "_id"
KEY = "_k"

NewId: TypeAlias = Callable[[], TableId]
Applied: TypeAlias = "tuple[pa.Table, pa.Table | None]"  # changes, and error rows if there are any
# metadata of a field that holds words of a user, which do not make two operators different
USERS_WORDS: Mapping[str, bool] = {"users_words": True}
# metadata of a field that came later: while it has its default it is not written, so that stored
# definitions stay as they are, also for programs that do not know it
CAME_LATER: Mapping[str, bool] = {"came_later": True}


def columns(count: int) -> list[str]:
    return [f"c{i}" for i in range(count)]


def column_of(table: pa.Table, name: str) -> pa.Array:
    """A column as one array, which is not copied if it is one already."""
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def change_schema(types: Sequence[pa.DataType]) -> pa.Schema:
    fields = [pa.field(name, kind) for name, kind in zip(columns(len(types)), types, strict=True)]
    return pa.schema([*fields, pa.field(WEIGHT, pa.int64()), pa.field(ID, pa.binary())])


# ---------------------------------------------------------------- what operators say of themselves


@dataclass(frozen=True, slots=True)
class StateTable:
    """A table that an operator writes, and what a record of it is made of.

    The record key is `key`, column by column, and behind it the identity of a row if `identity`
    says so; `value` is what the value tells. How they become bytes is said where the operator
    writes them. `of` numbers the input columns that `what` is about.
    """

    id: TableId
    what: str
    key: tuple[SqlType, ...]
    value: tuple[SqlType, ...]
    identity: bool = False
    of: tuple[int, ...] = ()

    @property
    def single(self) -> bool:
        """It has one record at most."""
        return not self.key and not self.identity


@dataclass(frozen=True, slots=True)
class IdentityPart:
    """One relation's share of an identity: its columns as a reader calls them."""

    names: tuple[str, ...]
    types: tuple[SqlType, ...]


Identity: TypeAlias = tuple[IdentityPart, ...]


@dataclass(frozen=True, slots=True)
class KeptTable:
    """A state table from which an operator gives its rows; records begin with the state key."""

    table: TableId
    key: tuple[SqlType, ...]


@dataclass(frozen=True, slots=True)
class Wording:
    """What an operator is told of its surroundings when it explains itself.

    `inputs` are the columns of each port in the users' words. `condition` is what a condition on
    its input is called. `table` is the base table of a source. `key` is that of the view whose
    table it keeps; `names` are the view's names of its outputs, if it feeds that table.
    """

    inputs: tuple[tuple[str, ...], ...]
    condition: str = "WHERE"
    table: str = ""
    key: tuple[str, ...] = ()
    names: Mapping[int, str] = field(default_factory=dict)


# ---------------------------------------------------------------- roles


class Operator(ABC):
    """What the engine asks of everything that stands in a graph."""

    __slots__ = ()

    stateful: ClassVar[bool] = False
    derived: ClassVar[bool] = False
    # what an error record stands for: a row of the input, or one of the result
    errors_of: ClassVar[Literal["input", "result"]] = "input"
    # what SQL calls a condition on the rows that it emits
    condition_word: ClassVar[str] = "WHERE"
    # whether it adds doubles, which other engines do in an order of their own
    adds_doubles: ClassVar[bool] = False

    @property
    def base_table(self) -> TableId:
        """The base table whose changes it stands for; 0 if it is no source."""
        return 0

    @abstractmethod
    def tables(self) -> tuple[StateTable, ...]:
        """The state tables that it writes."""

    @abstractmethod
    def with_tables(self, new_id: NewId) -> Self:
        """The same operator with a new id for each state table that it names, written or read; a
        table that is not wanted is 0 and stays so.
        """

    def columns_read(self) -> frozenset[int] | None:
        """The numbers of the input's columns that it needs; None: all, or it is not known."""
        return None

    def error_table(self) -> TableId:
        """Where rows are kept that cannot be evaluated (rule R9); 0 if none can raise."""
        return 0

    def describe(self, number: int) -> str:
        """What the number in an error record stands for, in the users' words."""
        raise TypeError(f"{type(self).__name__} keeps no error records")

    @abstractmethod
    def explain(self, words: Wording) -> str:
        """What it does, for EXPLAIN."""

    @abstractmethod
    def columns(self, inputs: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
        """What the columns that it emits hold, given those of its ports."""

    @abstractmethod
    def identify(self, inputs: Sequence[Identity]) -> Identity:
        """What identifies a row that it emits, given what does so for its ports."""

    # ------------------------------------------------------------ of which rows its rows are made
    # (`operators.lineage`); one that says nothing of it is made of all rows of its inputs

    @property
    def grows(self) -> bool:
        """Whether more rows of its inputs never take a row from its result."""
        return False

    def sought(self, wanted: Wanted) -> tuple[Wanted | None, ...]:
        """Per port: a condition such that, of every wanted row of the result, a row of the port
        with the same state key (of a stateless operator, the row itself) satisfies it; None if
        the port does not tell. Ports that are left out are not restricted.
        """
        return ()

    def needs(self, wanted: Wanted, below: Below) -> tuple[Wanted, ...]:
        """Per port: rows that are enough to have all wanted rows of the result, and no other; more
        rows of the inputs do not change that.
        """
        said = self.sought(wanted)
        return (*(each or EVERYTHING for each in said), *[EVERYTHING] * (below.ports - len(said)))

    def made_of(self, made: Pieces, below: Below) -> tuple[Pieces, ...]:
        """Per port: the rows of which rows of the result are made."""
        below.note(f"{type(self).__name__} does not say of which rows its rows are made: all count")
        needed = self.needs(EVERYTHING, below)
        return tuple(Pieces.undecided(below.find(port, all_)) for port, all_ in enumerate(needed))

    def why_not(self, wanted: Wanted, below: Below) -> Gap:
        """What is missing if no row of the result is wanted."""
        return Gap(f"{type(self).__name__} emits no such row, and does not say why")


class Stateless(Operator):
    """Maps changes to changes, each row by itself."""

    __slots__ = ()

    def passed_on(self) -> tuple[int, ...] | None:
        """Of each column that it emits the input column that it is, or -1. None unless it emits all
        rows of its input, whatever is in them.
        """
        return None

    @abstractmethod
    def apply(self, changes: pa.Table) -> Applied:
        """Changes, and the error rows if there are any (`operators.errors`)."""

    @classmethod
    def apply_all(cls, operators: Sequence[Self], changes: pa.Table) -> Iterator[Applied]:
        """What each of them makes of the same changes, in order; some kinds save work here."""
        return (operator.apply(changes) for operator in operators)


class Stateful(Operator):
    """Works in two halves:

        prepare(port, changes) -> parts       at the producer: tables with a binary column `_k`, the
                                              state key
        step(shard, parts)     -> changes     at the owner of the state key's slot: read as of e-1,
                                              write as of e, emit

    `step` sees all parts of its slot of this epoch at once: `parts[i]` are the tables that
    producers prepared as their i-th; of an operator with two ports, those of port i. It yields its
    changes in batches, so that one row that matches a million does not fill the memory. What it
    emits and writes depends only on the multiset of the changes and on the state as of e-1 (rule
    R5), so an attempt can run twice, anywhere.
    """

    __slots__ = ()

    stateful: ClassVar[bool] = True

    @abstractmethod
    def prepare(self, port: int, changes: pa.Table) -> tuple[pa.Table, ...]: ...

    @abstractmethod
    def step(self, shard: Shard, parts: Sequence[Sequence[pa.Table]]) -> Iterator[pa.Table]: ...

    def first_part(self) -> pa.Table | None:
        """The part that gives it a row before there is any change, if it has one."""
        return None

    def row_counts(self, table: TableId, values: pa.BinaryArray) -> Ints | None:
        """How many rows each record of a table stands for; None if each stands for one."""
        return None


class ViewTable(Stateful):
    """Keeps a view as readers see it: records by key, or different rows with how often each is
    there.
    """

    __slots__ = ()

    counts_rows: ClassVar[bool] = False

    table: TableId
    types: tuple[SqlType, ...]

    @property
    def slot_columns(self) -> int:
        """So many key columns decide the slot of a record; 0 if all of them do."""
        return 0

    @abstractmethod
    def value_columns(self) -> tuple[int, ...]:
        """The numbers of the columns that the value of a record holds, in order."""

    # whether a record has the identity of its row
    names_rows: ClassVar[bool] = False

    def leads(self) -> tuple[int, ...]:
        """Columns of its input with which its records begin, if there is one for each row."""
        return ()

    def identities(
        self, shard: Shard, prefixes: pa.BinaryArray, parts: Sequence[int]
    ) -> Iterator[pa.BinaryArray]:
        """Of the rows whose records begin so. `parts` are the key columns that make up an identity,
        where a record has none.
        """
        return iter(())

    # its rows are those of its input

    @property
    def grows(self) -> bool:
        return True

    def sought(self, wanted: Wanted) -> tuple[Wanted | None, ...]:
        return (wanted,)

    def made_of(self, made: Pieces, below: Below) -> tuple[Pieces, ...]:
        return (made,)

    def why_not(self, wanted: Wanted, below: Below) -> Gap:
        return Gap("", 0, wanted)


class Origin(Stateful):
    """Its consumers may come later, and are then loaded from its state."""

    __slots__ = ()

    @abstractmethod
    def kept(self) -> tuple[KeptTable, ...]:
        """The state tables from which `output` gives rows."""

    @abstractmethod
    def state_key(self, changes: pa.Table) -> pa.BinaryArray:
        """The state keys of changes that it emitted."""

    @abstractmethod
    def output(self, shard: Shard, low: bytes, high: bytes | None) -> Iterator[pa.Table]:
        """All rows of its result as of e-1 with low <= state key < high, as insertions, in
        batches.
        """

    def under(
        self, shard: Shard, keys: pa.BinaryArray, first: int | None = None
    ) -> Iterator[pa.Table]:
        """The same under some state keys; of each key the first rows may do, so many of them."""
        for key in keys.to_pylist():
            yield from self.output(shard, key, key + b"\xff")


class Derived(Origin):
    """Keeps nothing itself: it reads what its arranged inputs keep."""

    __slots__ = ()

    derived: ClassVar[bool] = True

    def tables(self) -> tuple[StateTable, ...]:
        return ()

    @abstractmethod
    def with_inputs(self, inputs: Sequence[Operator]) -> Self:
        """The same operator over the tables of these inputs, one per port."""
