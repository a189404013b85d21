"""Finding: rows of any node that are wanted, as of a cut.

    source      a base table, in ranges of its key if the condition says enough; the rows that an
                index names; else all of it
    stateless   wanted rows of the input, sent through the operator
    origin      its state under the state key, if the condition says it; else under the keys of
                wanted rows of an input that finds them; else all of its state

What is read as a whole is noted, because it takes as long as the table is large.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from belvedere.catalog.definitions import TableDefinition, ViewDefinition
from belvedere.encoding import KeyCodec, slot_of, slots_of
from belvedere.encoding.ranges import EVERYTHING as ALL_KEYS
from belvedere.encoding.ranges import KeyRange, Ranges
from belvedere.explain.tree import Texts
from belvedere.graph import Node
from belvedere.libraries import np, pa, pc
from belvedere.operators.base import ID, WEIGHT, Origin, Stateless, ViewTable, columns
from belvedere.operators.lineage import EVERYTHING, MOST_LOOKED_UP, Wanted
from belvedere.readers.base_rows import decode_columns, decode_rows, records_at
from belvedere.readers.cut import Cut
from belvedere.types import SqlType
from belvedere.why.indexes import index_for
from belvedere.why.state import PastSlot

# state keys that are looked up one by one; beyond, one pass over everything costs less
_MANY = 5000


class Finder:
    """Reads the nodes of one view at one cut, which the caller holds."""

    def __init__(self, cut: Cut, view: ViewDefinition) -> None:
        self.cut, self.view = cut, view
        self.nodes: Mapping[int, Node] = {node.id: node for node in view.planned.nodes}
        self.tables: Mapping[int, TableDefinition] = {t.id: t for t in cut.state.tables.values()}
        self.texts = Texts(view.planned, list(self.tables.values()))
        self.notes: dict[str, None] = {}
        self._slots: dict[int, PastSlot] = {}
        self._known: dict[int, pa.Table] = {}  # the rows that were found last, by table

    def close(self) -> None:
        for slot in self._slots.values():
            slot.close()

    def table(self, node: Node) -> TableDefinition:
        return self.tables[node.operator.base_table]

    def below(self, node: Node) -> NodeBelow:
        return NodeBelow(self, node)

    def of_port(self, node: Node, port: int, wanted: Wanted, first: int | None = None) -> pa.Table:
        found = [self.find(self.nodes[i], wanted, first) for i in node.inputs[port]]
        return _together(found)

    def find(self, node: Node, wanted: Wanted, first: int | None = None) -> pa.Table:
        """Rows with identity and without weight; each once."""
        operator = node.operator
        if wanted.nothing:
            wanted = Wanted(wanted.columns, wanted.types, wanted.values, pa.array([], pa.binary()))
        if node.source:
            return self._base_rows(node, wanted)
        if isinstance(operator, Origin):
            return wanted.keep(self._from_state(node, operator, wanted, first))
        assert isinstance(operator, Stateless), "views are the end of a graph"
        sought = self._sought(node, wanted, 0)
        rows = self.of_port(node, 0, sought)
        weight = pa.array(np.ones(rows.num_rows, np.int64))
        changes = rows.append_column(WEIGHT, weight)
        return wanted.keep(operator.apply(changes)[0].drop_columns([WEIGHT]).combine_chunks())

    def reaches(self, node: Node, wanted: Wanted) -> bool:
        """Whether wanted rows are found without reading a table as a whole."""
        if wanted.nothing:
            return True
        if node.source:
            if wanted.ids is not None or self._key_columns(node, wanted):
                return True
            return index_for(self.cut, self.table(node), wanted) is not None
        operator = node.operator
        if isinstance(operator, Origin) and self._state_keys(operator, wanted) is not None:
            return True
        for port, inputs in enumerate(node.inputs):
            said = operator.sought(wanted)
            mine = said[port] if port < len(said) else None
            if mine is not None and all(self.reaches(self.nodes[i], mine) for i in inputs):
                return True
        return False

    def _sought(self, node: Node, wanted: Wanted, port: int) -> Wanted:
        said = node.operator.sought(wanted)
        return (said[port] if port < len(said) else None) or EVERYTHING

    # ------------------------------------------------------------ base tables

    def _base_rows(self, node: Node, wanted: Wanted) -> pa.Table:
        """Rows that have been found are not read again."""
        table = self.table(node)
        known = self._known.get(table.id)
        if known is not None and wanted.ids is not None and _all_in(wanted.ids, known):
            return wanted.keep(known)
        named = wanted if wanted.ids is not None else self._named(node, wanted)
        ranges = self._ranges(node, named)
        if ranges == ALL_KEYS:
            self.notes.setdefault(f"read all rows of {table.name}")
        found = self._read(table, ranges, wanted)
        self._known[table.id] = found
        return found

    def _read(self, table: TableDefinition, ranges: Ranges, wanted: Wanted) -> pa.Table:
        """Columns that say whether a row is wanted are decoded before the others."""
        schema, cut = table.schema, self.cut
        table = cut.state.readable(table)
        names = columns(len(schema.columns))
        first = sorted(set(wanted.columns))
        parts = []
        for keys, values in records_at(cut.store, table, cut.epoch, cut.vector, ranges):
            if not wanted.everything:
                said = decode_columns(schema, keys, values, first)
                asked = pa.table([*said, keys], names=[*(f"c{i}" for i in first), ID])
                mask = pa.array(wanted.holds(asked))
                keys, values = keys.filter(mask), values.filter(mask)
            data = decode_rows(schema, keys, values)
            parts.append(pa.table([*data, keys], names=[*names, ID]))
        return pa.concat_tables(parts).combine_chunks() if parts else _no_rows(table)

    def _named(self, node: Node, wanted: Wanted) -> Wanted:
        """The same rows by their identities, if a view keeps these by what is known of the rows."""
        if self._key_columns(node, wanted):
            return wanted
        index = index_for(self.cut, self.table(node), wanted)
        if index is None:
            return wanted
        prefixes, found, left = index.prefixes(wanted), [], MOST_LOOKED_UP
        for slot in range(self.slots):
            for ids in index.identities(self.slot(slot), prefixes):
                found.append(ids)
                left -= len(ids)
                if left < 0:
                    return wanted
        return Wanted(ids=pa.concat_arrays([pa.array([], pa.binary()), *found]))

    def _key_columns(self, node: Node, wanted: Wanted) -> list[int]:
        """The first key columns that are known; of a double no key is known, as it may be -0.0."""
        schema, found = self.table(node).schema, list[int]()
        for column in schema.key_columns:
            number = schema.names.index(column.name)
            if number not in wanted.columns or column.type.name == "double":
                break
            found.append(number)
        return found

    def _ranges(self, node: Node, wanted: Wanted) -> Ranges:
        schema = self.table(node).schema
        kinds = tuple(c.type for c in schema.key_columns)
        if wanted.ids is not None and len(wanted.ids) <= MOST_LOOKED_UP:
            codec = KeyCodec(kinds, normalize=False)
            keys = wanted.ids.unique()
            return _points([codec.decode(keys)] if len(keys) else [], kinds)
        known = self._key_columns(node, wanted)
        if not known:
            return ALL_KEYS
        values = [wanted.values[wanted.columns.index(i)] for i in known]
        if len(values[0]) > _MANY:
            return ALL_KEYS
        return _points([values], kinds[: len(known)])

    # ------------------------------------------------------------ state

    def _from_state(
        self, node: Node, operator: Origin, wanted: Wanted, first: int | None
    ) -> pa.Table:
        keys = self._state_keys(operator, wanted)
        if keys is None and not wanted.everything:
            port = self._best_port(node, wanted)
            if port is not None:
                rows = self.of_port(node, port, self._sought(node, wanted, port))
                if isinstance(operator, ViewTable):
                    return rows  # they are its own
                keys = _first_columns(operator, rows)
        if keys is None or len(keys) > _MANY:
            if any(operator.kept()[0].key) or not wanted.everything:
                self.notes.setdefault(f"read all that is kept for {self.texts.describe(node)}")
            found = self._output(operator, [(slot, b"", None) for slot in range(self.slots)])
            return self._in_form(node, found)
        return self._in_form(node, self._under(operator, keys, first))

    def _best_port(self, node: Node, wanted: Wanted) -> int | None:
        """A port whose rows tell the state keys: one that finds them at once, or else the first."""
        said = node.operator.sought(wanted)
        ports = [port for port, each in enumerate(said) if each is not None]
        for port in ports:
            mine = said[port]
            if mine is not None and all(
                self.reaches(self.nodes[i], mine) for i in node.inputs[port]
            ):
                return port
        return None

    def _state_keys(self, operator: Origin, wanted: Wanted) -> pa.BinaryArray | None:
        """Those of all wanted rows, if the condition says them: in columns, or by an identity that
        stands for columns. The columns of a state key are the first ones, below as above.
        """
        if wanted.nothing:
            return pa.array([], pa.binary())
        count = len(operator.kept()[0].key)
        for said in (wanted, *operator.sought(wanted)):
            keys = None if said is None else said.keys(count)
            if keys is not None:
                return keys
        return None

    @property
    def slots(self) -> int:
        return self.cut.store.state.slots

    def slot(self, slot: int) -> PastSlot:
        if slot not in self._slots:
            reader = self.cut.store.state.reader(slot, self.cut.epoch)
            self._slots[slot] = PastSlot(reader, slot, self.cut.epoch)
        return self._slots[slot]

    def _output(
        self, operator: Origin, ranges: Iterable[tuple[int, bytes, bytes | None]]
    ) -> Iterator[pa.Table]:
        for slot, low, high in ranges:
            yield from operator.output(self.slot(slot), low, high)

    def _under(
        self, operator: Origin, keys: pa.BinaryArray, first: int | None
    ) -> Iterator[pa.Table]:
        places = slots_of(keys, self.slots) if len(keys) else np.empty(0, np.int64)
        for slot in np.unique(places).tolist():
            yield from operator.under(self.slot(slot), keys.filter(pa.array(places == slot)), first)

    def _in_form(self, node: Node, parts: Iterable[pa.Table]) -> pa.Table:
        names = [*columns(len(self.texts.columns(node))), ID]
        found = [part.select(names) for part in parts]
        return pa.concat_tables(found).combine_chunks() if found else self._empty(node)

    def _empty(self, node: Node) -> pa.Table:
        """No rows of a node that keeps some, in its form."""
        kinds: Sequence[SqlType] | None = getattr(node.operator, "types", None)
        if kinds is None:
            kind = type(node.operator).__name__
            raise TypeError(f"{kind} gives rows from its state, so it needs `types`: their columns")
        arrays = [pa.array([], kind.arrow) for kind in kinds]
        return pa.table([*arrays, pa.array([], pa.binary())], names=[*columns(len(kinds)), ID])


class NodeBelow:
    """What one node may read."""

    def __init__(self, finder: Finder, node: Node) -> None:
        self._finder, self._node = finder, node

    @property
    def ports(self) -> int:
        return len(self._node.inputs)

    def find(self, port: int, wanted: Wanted, first: int | None = None) -> pa.Table:
        return self._finder.of_port(self._node, port, wanted, first)

    def own(self, wanted: Wanted) -> pa.Table:
        return self._finder.find(self._node, wanted)

    def reaches(self, port: int, wanted: Wanted) -> bool:
        finder = self._finder
        return all(finder.reaches(finder.nodes[i], wanted) for i in self._node.inputs[port])

    def shard(self, key: bytes) -> PastSlot:
        return self._finder.slot(slot_of(key, self._finder.slots))

    def names(self, port: int) -> tuple[str, ...]:
        finder = self._finder
        if self._node.source:
            return finder.table(self._node).schema.names
        return finder.texts.columns(finder.nodes[self._node.inputs[port][0]])

    def note(self, text: str) -> None:
        self._finder.notes.setdefault(text)


def _points(tuples: Sequence[Sequence[pa.Array]], kinds: Sequence[SqlType]) -> Ranges:
    """Keys that begin with these tuples, in order, each once."""
    if not tuples:
        return ()
    encoded = [
        KeyCodec((kind,), normalize=False).encode([array]).to_pylist()
        for kind, array in zip(kinds, tuples[0], strict=True)
    ]
    bounds = sorted(set(zip(*encoded, strict=True)))
    return tuple(KeyRange(b, b"".join(b), b"".join(b) + b"\xff") for b in bounds)


def _first_columns(operator: Origin, rows: pa.Table) -> pa.BinaryArray:
    """The state keys of rows of an input, which begin with the columns of the state key."""
    kinds = operator.kept()[0].key
    arrays = [rows.column(f"c{i}") for i in range(len(kinds))]
    return KeyCodec(kinds).encode(arrays, rows=None if kinds else rows.num_rows).unique()


def _all_in(ids: pa.BinaryArray, rows: pa.Table) -> bool:
    return bool(pc.all(pc.is_in(ids, value_set=rows.column(ID).combine_chunks())).as_py())


def _together(found: Sequence[pa.Table]) -> pa.Table:
    return found[0] if len(found) == 1 else pa.concat_tables(found).combine_chunks()


def _no_rows(table: TableDefinition) -> pa.Table:
    kinds = [*(column.type.arrow for column in table.schema.columns), pa.binary()]
    names = [*columns(len(kinds) - 1), ID]
    return pa.table([pa.array([], kind) for kind in kinds], names=names)
