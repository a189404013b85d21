"""The store contract: what an engine may ask of a store, and what an implementer must promise.

A store keeps bytes. It knows no schemas: keys are order-preserving encodings, values are encoded
rows, both made by `belvedere.encoding`. It has three parts, each a small protocol:

    Catalog      one transaction domain for lease, intents, commits and definitions  (rule R4)
    BaseTables   the users' rows and the change log of operations on them  (rules R6, R10)
    StateTables  auxiliary and view tables, cut into slots, versioned by epoch  (rules R1, R2, R3)

It is written for three very different stores: one writer process at a time per environment (LMDB),
many clients with cell timestamps and check-and-mutate (HBase), client timestamps without order
(Cassandra). `stores.memory` is the specification, `tests/conformance/test_stores.py` holds every
store to it.

Batches are Arrow binary arrays. In `values`, NULL means "delete" on the way in and "absent" on the
way out.
"""

from belvedere.stores.base.base_tables import (
    AnyOperations,
    BaseSnapshot,
    BaseTables,
    Expected,
    FewOperations,
    LogBlock,
    Operations,
    TableId,
    in_arrays,
)
from belvedere.stores.base.capabilities import Capabilities
from belvedere.stores.base.catalog import Catalog, CatalogTransaction
from belvedere.stores.base.differences import Difference, differing, scan_differences
from belvedere.stores.base.foreign import (
    DELETE,
    DELETE_COLUMN,
    DELETE_FAMILY,
    DELETE_FAMILY_VERSION,
    PUT,
    WRONG_NULL,
    WRONG_TYPE,
    Codes,
    Condition,
    ForeignServer,
    ForeignTable,
    ForeignTables,
    KeyedCells,
    RowRange,
    cells_of_rows,
    cells_schema,
    read_cells,
    rows_of_cells,
)
from belvedere.stores.base.history import PastRows, RowChanges, RowHistory
from belvedere.stores.base.mapping import ODD, MappedColumn, MappedKey, Mapping, is_odd
from belvedere.stores.base.state import (
    FLOOR,
    Getter,
    Shard,
    Slot,
    SlotStatus,
    StateReader,
    StateTables,
    TableShape,
    Write,
)
from belvedere.stores.base.store import Store

__all__ = [
    "DELETE",
    "DELETE_COLUMN",
    "DELETE_FAMILY",
    "DELETE_FAMILY_VERSION",
    "FLOOR",
    "ODD",
    "PUT",
    "WRONG_NULL",
    "WRONG_TYPE",
    "AnyOperations",
    "BaseSnapshot",
    "BaseTables",
    "Capabilities",
    "Catalog",
    "CatalogTransaction",
    "Codes",
    "Condition",
    "Difference",
    "Expected",
    "FewOperations",
    "ForeignServer",
    "ForeignTable",
    "ForeignTables",
    "Getter",
    "KeyedCells",
    "LogBlock",
    "MappedColumn",
    "MappedKey",
    "Mapping",
    "Operations",
    "PastRows",
    "RowChanges",
    "RowHistory",
    "RowRange",
    "Shard",
    "Slot",
    "SlotStatus",
    "StateReader",
    "StateTables",
    "Store",
    "TableId",
    "TableShape",
    "Write",
    "cells_of_rows",
    "cells_schema",
    "differing",
    "in_arrays",
    "is_odd",
    "read_cells",
    "rows_of_cells",
    "scan_differences",
]
