"""Vectors are positions of streams: a lattice, in which streams that are not named stand at 0."""

from __future__ import annotations

import json
import pickle
import random

import pytest

from belvedere.epochs.choose import share_rows
from belvedere.types import Vector

STREAMS = ("a", "b", "c")


def random_vector(rng: random.Random) -> Vector:
    return Vector({s: rng.randrange(4) for s in rng.sample(STREAMS, rng.randrange(4))})


@pytest.mark.parametrize("seed", range(200))
def test_vectors_are_a_lattice(seed: int) -> None:
    rng = random.Random(seed)
    x, y, z = (random_vector(rng) for _ in range(3))
    both = x.merge(y)
    assert both == y.merge(x)
    assert both.covers(x)
    assert both.covers(y)
    assert x.merge(x) == x
    assert both.merge(z) == x.merge(y.merge(z))
    assert x.covers(x.lowest(y))
    assert y.covers(x.lowest(y))
    assert (x.covers(y) and y.covers(x)) == (x == y)
    assert x.covers(y) == (x.behind(y) == 0) == (x.merge(y) == x)
    assert x.operations + x.behind(y) == x.merge(y).operations
    assert {s: x[s] for s in STREAMS} == x == Vector(json.loads(json.dumps(x.to_json())))
    assert pickle.loads(pickle.dumps(x)) == x
    assert x != y or hash(x) == hash(y)


def test_a_stream_that_is_not_named_stands_at_its_beginning() -> None:
    assert Vector({"a": 0}) == Vector() == {}
    assert "a" not in Vector({"a": 0})
    assert Vector()["gone"] == 0
    assert not Vector()


def test_users_see_the_number_of_the_only_stream() -> None:
    assert str(Vector({"log": 1234})) == "1,234"
    assert str(Vector({"b": 2, "a": 1000})) == "a 1,000, b 2"
    assert repr(Vector({"log": 7})) == "Vector({'log': 7})"


@pytest.mark.parametrize("seed", range(200))
def test_rows_are_shared_fairly(seed: int) -> None:
    """Nobody gets less than another one that gets more than it; nothing is left that is wanted."""
    rng = random.Random(seed)
    behind = {f"s{i}": rng.randint(1, 50) for i in range(rng.randint(0, 6))}
    rows = rng.randint(1, 120)
    shares = share_rows(behind, rows)
    assert all(0 < share <= behind[stream] for stream, share in shares.items())
    assert sum(shares.values()) == min(rows, sum(behind.values()))
    hungry = [share for stream, share in shares.items() if share < behind[stream]]
    assert all(share >= max(shares.values()) - 1 for share in hungry)
    left_out = [behind[stream] for stream in behind if stream not in shares]
    assert all(behind[stream] >= max(left_out, default=0) for stream in shares)
