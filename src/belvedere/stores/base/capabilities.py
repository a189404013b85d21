"""What a store can do, as values: the engine asks these, never which store it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Everything is so in the embedded store.

    `longest_key` is that of a record of a state table or a row, in bytes; None: keys of any length.

    `slot_transactions`: a slot itself stops an attempt that comes too late, in every read and
    write. A store without them has versions of single rows: its shards look at the catalog's floor
    after reading and before writing, and a commit may be there in part.

    `owns_base_tables`: rows are written through the store. Else it has their log only.

    `conditional_writes`: `unless_after` is respected, so UPDATE and DELETE are possible.

    `transactions`: a write may span tables, and no epoch divides it; rows that were read before are
    compared in it.

    `passing`: operations may pass, without becoming rows (`Operations.before`).

    `shared`: other processes can open it by its URL, so Spark's workers can run epochs.
    """

    longest_key: int | None = None
    slot_transactions: bool = True
    owns_base_tables: bool = True
    conditional_writes: bool = True
    transactions: bool = True
    passing: bool = True
    shared: bool = True
