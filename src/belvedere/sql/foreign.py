"""USING hbase OPTIONS (...): where the key and the columns of a table are in a foreign table.

    table       the foreign table, as in 'shop:orders'
    family      that of columns which `columns` does not place; their qualifiers are their names
    columns     places of single columns, as in 'amount = d:amt, note = x:note'
    format      'bytes' (as HBase's class Bytes writes values) or 'text', for key and columns
    text        columns that are text although the others are bytes, as in 'amount, note'
    separator   what stands between the columns of a row key, as in '|'

Everything else of the foreign table is left alone.
"""

from __future__ import annotations

from collections.abc import Mapping as Options

from belvedere.encoding.natural import Form
from belvedere.errors import SchemaError, SqlError
from belvedere.stores.base import MappedColumn, MappedKey, Mapping
from belvedere.types import Schema

OPTIONS = ("table", "family", "columns", "format", "text", "separator")


def mapping_of(schema: Schema, options: Options[str, str]) -> Mapping:
    """What the options say of the columns of a table."""
    _check(schema, options)
    form = _form(options.get("format", "bytes"))
    text = {_known(schema, name) for name in _listed(options.get("text", ""))}
    places = _places(schema, options)
    families = tuple(dict.fromkeys(family for family, _ in places.values()))
    columns = tuple(
        MappedColumn(
            column.type,
            families.index(places[column.name][0]),
            places[column.name][1],
            "text" if column.name in text else form,
            column.nullable,
        )
        for column in schema.value_columns
    )
    in_text = text & set(schema.key)
    if in_text and in_text != set(schema.key):
        raise SqlError(
            f"text = '{options['text']}' names a part of the key: name all columns of the key, or"
            " none"
        )
    key = MappedKey(
        tuple(column.type for column in schema.key_columns),
        "text" if in_text else form,
        options.get("separator", "").encode(),
    )
    return Mapping(options["table"], key, families, columns)


def _check(schema: Schema, options: Options[str, str]) -> None:
    if not options.get("table"):
        raise SqlError(
            "USING hbase needs the name of a table: OPTIONS (table = 'shop:orders', ...)"
        )
    if not schema.value_columns:
        raise SchemaError(
            "a table of keys only cannot tell whether a row is there: declare one column that every"
            " row has"
        )


def _form(text: str) -> Form:
    if text == "bytes":
        return "bytes"
    if text == "text":
        return "text"
    raise SqlError(f"format = '{text}' is not understood: use 'bytes' or 'text'")


def _places(schema: Schema, options: Options[str, str]) -> dict[str, tuple[bytes, bytes]]:
    """Family and qualifier of every column that is not of the key."""
    given = _given(schema, options.get("columns", ""))
    family = options.get("family")
    for column in schema.value_columns:
        if column.name not in given:
            if not family:
                raise SqlError(
                    f"column {column.name} has no place: give family = 'd' for all columns, or"
                    f" columns = '{column.name} = d:{column.name}'"
                )
            given[column.name] = family.encode(), column.name.encode()
    taken: dict[tuple[bytes, bytes], str] = {}
    for name, place in given.items():
        if place in taken:
            raise SqlError(
                f"columns {taken[place]} and {name} have the same place: give each its own"
            )
        taken[place] = name
    return given


def _given(schema: Schema, text: str) -> dict[str, tuple[bytes, bytes]]:
    given: dict[str, tuple[bytes, bytes]] = {}
    for part in _listed(text):
        name, is_placed, place = (each.strip() for each in part.partition("="))
        family, is_whole, qualifier = place.partition(":")
        if not (is_placed and is_whole and family):
            raise SqlError(
                f"'{part}' in columns is not understood: write column = family:qualifier"
            )
        column = _known(schema, name)
        if column in schema.key:
            raise SqlError(f"{column} is the row's key: leave it out of columns")
        if column in given:
            raise SqlError(f"column {column} is placed twice: place it once")
        given[column] = family.encode(), qualifier.encode()
    return given


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _known(schema: Schema, name: str) -> str:
    for column in schema.columns:
        if column.name.lower() == name.lower():
            return column.name
    raise SqlError(f"there is no column {name}: the columns are {', '.join(schema.names)}")


def options_text(schema: Schema, mapping: Mapping) -> str:
    """The clause that would make this mapping."""
    names = [column.name for column in schema.value_columns]
    pairs = list(zip(names, mapping.columns, strict=True))
    places = [
        f"{name} = {mapping.families[c.family].decode()}:{c.qualifier.decode()}"
        for name, c in pairs
    ]
    text = [name for name, c in pairs if c.form == "text"]
    text += schema.key if mapping.key.form == "text" else ()
    options = {"table": mapping.source, "columns": ", ".join(places), "text": ", ".join(text)}
    options["separator"] = mapping.key.separator.decode()
    said = ", ".join(f"{name} = {literal(value)}" for name, value in options.items() if value)
    return f" USING hbase OPTIONS ({said})"


def literal(value: str) -> str:
    """Text as a statement must write it."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
