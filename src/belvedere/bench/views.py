"""The views that every engine is asked to keep.

V1      selection         rows with val < 5000
V2      count and sum     per grp
V3      min and max       per grp
V4      index             from grp to key
V_all   the four together
V5      join              of r with a small table s, over a log of its own
M...    many              aggregates that differ in what they show, not in what they keep
"""

from __future__ import annotations

from dataclasses import dataclass

BASE_COLUMNS = "key STRING, grp STRING, val BIGINT, PRIMARY KEY (key)"
CREATE_TABLE = f"CREATE TABLE r ({BASE_COLUMNS})"
CREATE_SMALL = "CREATE TABLE s (grp STRING, name STRING, PRIMARY KEY (grp))"
TOGETHER = "V_all"
JOIN = "V5"


@dataclass(frozen=True, slots=True)
class View:
    """A definition that Spark SQL and DuckDB read alike; `key` is set where the user has to name
    it.
    """

    name: str
    select: str
    columns: tuple[str, ...]
    key: str = ""

    @property
    def create(self) -> str:
        options = f" WITH (key = '{self.key}')" if self.key else ""
        return f"CREATE MATERIALIZED VIEW {self.name}{options} AS {self.select}"

    @property
    def duckdb(self) -> str:
        """DuckDB sums BIGINT to HUGEINT, Spark to BIGINT."""
        return self.select.replace("sum(val)", "sum(val)::BIGINT")


_FOUR = (
    View("V1", "SELECT key, grp, val FROM r WHERE val < 5000", ("key", "grp", "val")),
    View(
        "V2",
        "SELECT grp, count(*) AS n, sum(val) AS total FROM r GROUP BY grp",
        ("grp", "n", "total"),
    ),
    View(
        "V3", "SELECT grp, min(val) AS lo, max(val) AS hi FROM r GROUP BY grp", ("grp", "lo", "hi")
    ),
    View("V4", "SELECT grp, key FROM r", ("grp", "key"), key="grp, key"),
)
VIEWS = {view.name: view for view in _FOUR}
NAMES = (*VIEWS, TOGETHER)
EVERY = (*NAMES, JOIN)  # in the order of the tables of a report
V5 = View(
    JOIN,
    "SELECT r.key, r.grp, r.val, s.name FROM r JOIN s ON r.grp = s.grp",
    ("key", "grp", "val", "name"),
)

# to check the base table itself
WHOLE = View("R_all", "SELECT key, grp, val FROM r", ("key", "grp", "val"))


def members(name: str) -> tuple[View, ...]:
    """The views behind a name of the tables: one, or all four."""
    return _FOUR if name == TOGETHER else (VIEWS[name],)


def ten() -> tuple[View, ...]:
    """The four and six aggregates over growing selections, to load the write path with."""
    sums = "SELECT grp, count(*) AS n, sum(val) AS total FROM r WHERE val < {} GROUP BY grp"
    return (
        *_FOUR,
        *(View(f"W{i}", sums.format(i * 1_000), ("grp", "n", "total")) for i in range(1, 7)),
    )


def many(variants: int, aggregates: int = 10) -> tuple[View, ...]:
    """`aggregates` groupings over growing selections, each shown in so many ways: with another
    flag, every second one with HAVING.

    Nothing that they show can raise, so no view needs an error table of its own: all but its rows
    can be shared.
    """
    text = (
        "SELECT grp, count(*) AS n, sum(val) AS total, sum(val) > {way}000 AS large FROM r WHERE"
        " val < {bound} GROUP BY grp{having}"
    )
    views = []
    for number in range(1, aggregates + 1):
        for way in range(variants):
            having = f" HAVING count(*) > {way}" if way % 2 else ""
            select = text.format(way=way, bound=number * 1_000, having=having)
            views.append(View(f"M{number}_{way}", select, ("grp", "n", "total", "large")))
    return tuple(views)
