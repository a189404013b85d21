"""Positions and snapshots of PostgreSQL."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belvedere.errors import SourceError
from belvedere.sources.postgres.places import (
    end_of_records,
    is_shown,
    name_transaction,
    read_position,
    write_position,
)

NUMBERS = st.integers(0, 2**64 - 1)


@given(NUMBERS)
def test_a_position_is_read_as_it_was_written(place: int) -> None:
    assert read_position(write_position(place)) == place


@pytest.mark.parametrize("text", ["", "1", "x/y", "0/"])
def test_other_texts_are_no_positions(text: str) -> None:
    with pytest.raises(SourceError, match="no position"):
        read_position(text)


@given(
    st.integers(3, 2**40),
    st.lists(st.integers(0, 2**30), min_size=1, max_size=6),
    st.integers(-(2**30), 2**30),
)
def test_a_snapshot_shows_what_was_over_when_it_was_taken(
    low: int, running: list[int], asked: int
) -> None:
    """The log has 32 bits of a number, and numbers near the snapshot are asked for."""
    numbers = sorted({low + each for each in running})
    high = numbers[-1] + 1
    marker = f"{numbers[0]}:{high}:{','.join(map(str, numbers))}"
    number = max(3, numbers[0] + asked)
    over = number < high and number not in numbers
    assert is_shown(marker, name_transaction(number % 2**32, 77)) == over


def test_the_end_is_never_inside_the_header_of_a_page() -> None:
    assert end_of_records(8192 * 5 + 24, 8192) == 8192 * 5
    assert end_of_records(8192 * 2048 + 40, 8192) == 8192 * 2048
    assert end_of_records(8192 * 5 + 48, 8192) == 8192 * 5 + 48
