"""Bytes on disk: tuples as ordered keys, rows as compact values, keys as slots.

    keys.py         KeyCodec: tuples to bytes whose order is the order of the tuples
    one_key.py      the same for one tuple of Python values
    rows.py         RowCodec: rows to bytes that decode fast
    one_row.py      the same for one row of Python values
    ranges.py       ranges of keys, from what is known of their columns
    slots.py        which of `count` files a key lives in, for ever
    fields.py       columns of fixed-width types as unsigned numpy limbs, and back
    binaries.py     Arrow binary arrays as padded numpy bytes, and back
    order.py        the order of many byte strings at once
    scalars.py      Python values as the integers they are stored as, and back

Everything here but order.py and ranges.py is persisted: a change of any byte is a change of the
store's format version.
"""

from belvedere.encoding.keys import KeyCodec, prefix_range, too_long
from belvedere.encoding.one_row import dict_decoder
from belvedere.encoding.rows import RowCodec
from belvedere.encoding.slots import slot_hash, slot_hash_one, slot_of, slots_of

__all__ = [
    "KeyCodec",
    "RowCodec",
    "dict_decoder",
    "prefix_range",
    "slot_hash",
    "slot_hash_one",
    "slot_of",
    "slots_of",
    "too_long",
]
