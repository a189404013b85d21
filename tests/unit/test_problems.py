"""Rows that a view cannot evaluate: all are counted, some are listed."""

from __future__ import annotations

import pytest

import belvedere
from belvedere.errors import ViewInError
from belvedere.readers.problems import LISTED


def test_a_view_in_error_says_for_how_many_rows() -> None:
    with belvedere.open("memory:") as db:
        db.sql(
            "CREATE TABLE t (id INT, x INT, PRIMARY KEY (id)); CREATE MATERIALIZED VIEW v AS SELECT"
            " id, 1 / x AS y FROM t"
        )
        db.table("t").put_many([{"id": i, "x": i // 2000} for i in range(3000)])
        db.catch_up()
        with pytest.raises(ViewInError, match=r"in error for 2,000 row\(s\); first: ") as raised:
            db.view("v").get(2500)
        assert len(raised.value.rows) == LISTED
        db.sql("DELETE FROM t WHERE x = 0")
        db.catch_up()
        assert db.view("v").get(2500) == {"id": 2500, "y": 1.0}
