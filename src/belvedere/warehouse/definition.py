"""A core as the catalog keeps it: the shape, and the relations of its members."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from belvedere.catalog.damage import decodes
from belvedere.sources.base import Relation
from belvedere.types import Column, Schema
from belvedere.warehouse.asof import AsOf
from belvedere.warehouse.conventional import Conventional
from belvedere.warehouse.cstrobe import CStrobe
from belvedere.warehouse.machine import Machine
from belvedere.warehouse.rows import Equality, Member, Shape
from belvedere.warehouse.strobe import GStrobe, Strobe, TStrobe

_ONE_BY_ONE: dict[str, type[Strobe | Conventional]] = {
    "strobe": Strobe,
    "t-strobe": TStrobe,
    "g-strobe": GStrobe,
    "conventional": Conventional,
}


def to_text(shape: Shape, relations: Sequence[Relation]) -> str:
    told = [
        {"name": r.name, "schema": r.schema.to_json(), "has_before": r.has_before}
        for r in relations
    ]
    return json.dumps({"shape": asdict(shape), "relations": told})


@decodes("the joins of a view")
def from_text(text: bytes) -> tuple[Shape, tuple[Relation, ...]]:
    found = json.loads(text)
    shape = found["shape"]
    members = tuple(
        Member(m["name"], m["source"], tuple(m["columns"]), tuple(m["key"]))
        for m in shape["members"]
    )
    relations = tuple(
        Relation(r["name"], Schema.from_json(r["schema"]), r["has_before"])
        for r in found["relations"]
    )
    equalities = tuple(Equality(**e) for e in shape["equalities"])
    shown = tuple((member, column) for member, column in shape["shown"])
    return Shape(members, equalities, shown), relations


def joined_schema(shape: Shape, relations: Sequence[Relation], names: Sequence[str]) -> Schema:
    """Of the view's rows: their key is the keys of all relations."""
    columns, key = [], []
    for (member, column), name in zip(shape.shown, names, strict=True):
        about = shape.members[member]
        told = relations[member].schema.column(about.columns[column])
        is_key = column in about.key
        columns.append(Column(name, told.type, told.nullable and not is_key))
        key += [name] if is_key else []
    return Schema(tuple(columns), tuple(key))


def machine_of(shape: Shape, algorithm: str, every: int, covered: dict[str, str]) -> Machine:
    if algorithm in _ONE_BY_ONE:
        return _ONE_BY_ONE[algorithm](shape, covered)
    return (CStrobe if algorithm == "c-strobe" else AsOf)(shape, covered, every)
