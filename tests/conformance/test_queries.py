"""Queries in Spark and through `translate` and `run`: same types, same rows, and what fails there
fails here.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from belvedere.errors import SqlError
from belvedere.sql.dialect import parse
from belvedere.sql.query import relations, run, translate
from belvedere.types import Column, Schema, from_arrow

pytestmark = pytest.mark.spark

NAN, INF = float("nan"), float("inf")


def rows(schema: dict[str, pa.DataType], *data: tuple[Any, ...]) -> pa.Table:
    columns = list(zip(*data, strict=True)) if data else [() for _ in schema]
    return pa.table(
        [pa.array(c, t) for c, t in zip(columns, schema.values(), strict=True)], names=list(schema)
    )


SALES = {
    "id": pa.int64(),
    "region": pa.string(),
    "qty": pa.int32(),
    "price": pa.decimal128(10, 2),
    "score": pa.float64(),
    "day": pa.date32(),
    "at": pa.timestamp("us", tz="UTC"),
    "paid": pa.bool_(),
}
TABLES = {
    "sales": rows(
        SALES,
        (
            1,
            "north",
            3,
            Decimal("10.50"),
            1.5,
            date(2024, 1, 31),
            datetime(2024, 1, 31, 10, tzinfo=UTC),
            True,
        ),
        (
            2,
            "north",
            None,
            Decimal("0.01"),
            -0.0,
            date(2024, 2, 29),
            datetime(2024, 2, 29, 23, 59, 59, 999999, UTC),
            False,
        ),
        (3, "south", 7, None, 0.0, None, None, None),
        (
            4,
            None,
            2,
            Decimal("99.99"),
            NAN,
            date(1969, 12, 31),
            datetime(1969, 12, 31, 23, tzinfo=UTC),
            True,
        ),
        (
            5,
            "south",
            2,
            Decimal("-3.33"),
            None,
            date(2024, 1, 31),
            datetime(2024, 1, 31, 10, tzinfo=UTC),
            True,
        ),
        (
            6,
            "east",
            0,
            Decimal("5.00"),
            -INF,
            date(9999, 12, 31),
            datetime(2000, 1, 1, tzinfo=UTC),
            False,
        ),
        (
            7,
            "East",
            -5,
            Decimal("5.00"),
            NAN,
            date(2024, 3, 1),
            datetime(2024, 3, 1, tzinfo=UTC),
            None,
        ),
        (8, None, 3, Decimal("10.50"), 2.25, None, datetime(2024, 1, 31, 10, tzinfo=UTC), True),
    ),
    "regions": rows(
        {"region": pa.string(), "Name": pa.string(), "boss": pa.int32(), "score": pa.float64()},
        ("north", "The North", 1, 0.0),
        ("south", "The South", 2, NAN),
        ("west", "The West", None, -0.0),
        (None, "Nowhere", 3, None),
        ("south", "Deep South", 2, 2.25),
    ),
    "big": rows(
        {
            "k": pa.int32(),
            "l": pa.int64(),
            "w": pa.decimal128(38, 2),
            "n": pa.decimal128(5, 3),
            "s": pa.string(),
        },
        (1, 2**62, Decimal("99999999999999999999999999999999999.99"), Decimal("1.005"), "2"),
        (1, 2**62 - 1, Decimal("0.01"), Decimal("-0.006"), "10"),
        (2, -(2**63), None, Decimal("2.000"), "x"),
        (2, None, Decimal("-7.77"), None, None),
    ),
    "nothing": rows(SALES),
}

ORDERED = """
SELECT id, region FROM sales ORDER BY region, id
SELECT id, region FROM sales ORDER BY region DESC, id DESC
SELECT id FROM sales ORDER BY score, id
SELECT id FROM sales ORDER BY score DESC NULLS FIRST, id
SELECT id, qty * 2 AS twice FROM sales ORDER BY twice DESC, 1
SELECT id FROM sales ORDER BY qty + id, id LIMIT 3 OFFSET 2
SELECT id AS region FROM sales ORDER BY region DESC
SELECT id AS x FROM sales s ORDER BY s.region NULLS LAST, x
SELECT region, count(*) AS n FROM sales GROUP BY region ORDER BY n DESC, region
SELECT region FROM sales GROUP BY region ORDER BY sum(price) DESC, max(id)
SELECT DISTINCT region, qty FROM sales ORDER BY qty, region
SELECT DISTINCT qty AS q FROM sales ORDER BY q * -1
SELECT id FROM sales UNION ALL SELECT boss FROM regions ORDER BY id DESC NULLS LAST LIMIT 5
(SELECT id FROM sales ORDER BY id LIMIT 3) UNION ALL (SELECT id FROM sales ORDER BY id DESC LIMIT 2) ORDER BY 1
SELECT day, at, id FROM sales ORDER BY ALL
SELECT region || '!' AS u, sum(qty) FROM sales GROUP BY u ORDER BY u
SELECT length(region) AS region, count(*) AS n FROM sales GROUP BY region ORDER BY region, n
SELECT id % 3 AS id, id AS x FROM sales ORDER BY id + 1, x
SELECT -k AS k, count(*) AS n FROM big GROUP BY k ORDER BY k
SELECT -k AS k, count(*) AS n FROM big GROUP BY k ORDER BY k + 1
SELECT id, rank() OVER (PARTITION BY region ORDER BY price DESC) AS r FROM sales ORDER BY id
SELECT sum(qty) AS qty FROM sales GROUP BY region ORDER BY qty
SELECT * FROM (SELECT id, region FROM sales) t ORDER BY t.region, t.id DESC
SELECT id, region FROM sales ORDER BY region = (SELECT max(region) FROM regions), id
"""

BAGS = """
SELECT * FROM sales
SELECT * FROM nothing
SELECT 1
SELECT 1 AS a, 'x' AS b, 1.5 AS c, 2e0 AS d, date '2024-01-01' AS e, true AS f, 3000000000 AS g
SELECT count(*)
SELECT 1 WHERE false
SELECT s.*, 1 AS one FROM sales AS s WHERE paid
SELECT * EXCEPT (at, day) FROM sales
SELECT Region, QTY FROM SALES WHERE Qty > 2 AND region IS NOT NULL
SELECT id FROM sales WHERE region = 'north' OR price > 50
SELECT id, a + 1 AS b, b * 2 AS c FROM (SELECT id, qty AS a FROM sales)
SELECT id, price * qty AS total, price / 3 AS third FROM sales
SELECT count(*), count(qty), count(region, qty), count(DISTINCT region), count(DISTINCT region, qty) FROM sales
SELECT sum(qty), sum(id), sum(price), sum(score) FROM sales
SELECT avg(qty), avg(id), avg(price) FROM sales
SELECT min(region), max(region), min(price), max(price), min(day), max(at), min(paid), max(paid) FROM sales
SELECT min(score), max(score), avg(score) FROM sales
SELECT sum(qty), avg(price), min(day), count(*), count(DISTINCT id) FROM nothing
SELECT region, sum(qty) FROM nothing GROUP BY region
SELECT region, sum(qty), avg(price), count(*) FROM sales GROUP BY region
SELECT score, count(*) FROM sales GROUP BY score
SELECT DISTINCT score FROM sales
SELECT count(DISTINCT score), sum(DISTINCT price), avg(DISTINCT qty), sum(DISTINCT qty) FROM sales
SELECT sum(qty) FILTER (WHERE paid), count(*) FILTER (WHERE price > 5), count_if(qty > 2) FROM sales
SELECT region, count(*) FILTER (WHERE paid) AS n FROM sales GROUP BY 1
SELECT sum(10 / qty) FILTER (WHERE qty <> 0) FROM sales
SELECT region, qty % 2, count(*) FROM sales GROUP BY ALL
SELECT qty % 2 AS odd, max(id) - min(id) FROM sales GROUP BY odd
SELECT region, sum(qty) + 1 FROM sales GROUP BY region HAVING sum(qty) > 2
SELECT region, count(*) AS c FROM sales GROUP BY region HAVING c > 1
SELECT region || '!' AS region, count(*) FROM sales GROUP BY region HAVING region IN ('north', 'east!')
SELECT sum(qty) AS qty FROM sales GROUP BY region HAVING qty > 3
SELECT region || '!' AS region, count(*) FROM sales GROUP BY region || '!' HAVING region IN ('north', 'east!')
SELECT -k AS k, count(*) FROM big GROUP BY k HAVING -k > -2
SELECT -k AS k, count(*) FROM big GROUP BY k HAVING k > 0 AND sum(k) > 2
SELECT k + 1 AS kk, kk * 2 AS kkk, count(*) AS c, c + 1 AS m FROM big GROUP BY k
SELECT id AS a FROM sales WHERE id > 0 GROUP BY id, qty HAVING a > 2 AND qty > 1
SELECT id FROM sales LIMIT 0
SELECT max(qty) AS m FROM sales HAVING count(*) > 100
SELECT sum(qty) AS qty FROM sales HAVING sum(qty) > 1
SELECT year(day), month(day), count(*) FROM sales GROUP BY year(day), month(day)
SELECT k, avg(n), sum(n), min(w) FROM big GROUP BY k
SELECT avg(w), sum(w), avg(w * 1.5) FROM big WHERE k = 2
SELECT avg(w) FROM (SELECT w FROM big WHERE w < 1 UNION ALL SELECT CAST('0.05' AS decimal(38,2)))
SELECT k, sum(w) FROM big GROUP BY k
SELECT avg(l) FROM big
SELECT max(l) + 0 FROM big WHERE k = 1
SELECT s.id, r.Name FROM sales s JOIN regions r ON s.region = r.region
SELECT s.id, r.name FROM sales s LEFT JOIN regions r ON s.region = r.region AND r.boss > 1
SELECT s.id, r.name FROM sales s RIGHT JOIN regions r ON s.region = r.region
SELECT s.id, r.name FROM sales s FULL OUTER JOIN regions r ON s.region = r.region
SELECT s.id, r.name FROM sales s FULL JOIN regions r ON s.qty < r.boss
SELECT s.id, r.name FROM sales s JOIN regions r ON s.score = r.score
SELECT s.id, r.name FROM sales s JOIN regions r ON s.score <=> r.score
SELECT s.id, r.name FROM sales s JOIN regions r ON s.score >= r.score
SELECT s.id, r.boss FROM sales s JOIN regions r ON s.id = r.boss
SELECT s.id, b.s FROM sales s JOIN big b ON s.price > b.n AND b.k = 1
SELECT id, name, region FROM sales JOIN regions USING (region)
SELECT * FROM (SELECT region, id FROM sales) JOIN regions USING (region)
SELECT * FROM (SELECT region, id FROM sales) s FULL JOIN regions r USING (region)
SELECT * FROM (SELECT id, region FROM sales) s RIGHT JOIN regions r USING (region)
SELECT s.*, r.boss FROM (SELECT id, region FROM sales) s LEFT JOIN regions r USING (region)
SELECT r.*, s.id FROM (SELECT id, region FROM sales) s LEFT JOIN regions r USING (region)
SELECT r.*, s.* FROM (SELECT id, region FROM sales) s FULL JOIN regions r USING (region)
SELECT s.* FROM (SELECT id, region FROM sales) s RIGHT JOIN regions r USING (region)
SELECT s.id, s.region, r.region, region FROM sales s LEFT JOIN regions r USING (region)
SELECT * FROM (SELECT id, region FROM sales) NATURAL JOIN (SELECT region, boss FROM regions)
SELECT id FROM sales LEFT SEMI JOIN regions ON sales.region = regions.region
SELECT id FROM sales LEFT ANTI JOIN regions ON sales.region = regions.region
SELECT count(*) FROM sales CROSS JOIN regions
SELECT a.id, b.id FROM sales a, sales b WHERE a.qty = b.qty AND a.id < b.id
SELECT a.region, b.name, c.k FROM sales a LEFT JOIN regions b ON a.region = b.region JOIN big c ON c.k = a.qty - 1
SELECT s.id, e.id FROM sales s LEFT JOIN nothing e ON s.id = e.id
SELECT e.id, s.id FROM nothing e RIGHT JOIN sales s ON s.id = e.id WHERE e.id IS NULL
SELECT r.name, sum(s.price) FROM sales s JOIN regions r ON s.region = r.region GROUP BY r.name
WITH t AS (SELECT region, sum(qty) AS q FROM sales GROUP BY region) SELECT a.region, b.q FROM t a JOIN t b ON a.q <= b.q
WITH t (r, n) AS (SELECT region, id FROM sales), u AS (SELECT r FROM t WHERE n > 3) SELECT DISTINCT r FROM u
WITH sales AS (SELECT id FROM sales WHERE id < 3) SELECT * FROM sales
SELECT qty FROM sales UNION SELECT boss FROM regions
SELECT qty FROM sales UNION ALL SELECT price FROM sales
SELECT score FROM sales UNION SELECT score FROM regions
SELECT id, region FROM sales UNION ALL SELECT NULL, 'x'
SELECT region FROM sales INTERSECT SELECT region FROM regions
SELECT region FROM sales INTERSECT ALL SELECT region FROM regions
SELECT region FROM sales EXCEPT SELECT region FROM regions
SELECT region FROM regions EXCEPT ALL SELECT region FROM sales WHERE id < 4
SELECT score FROM sales EXCEPT SELECT score FROM regions
SELECT score FROM sales INTERSECT SELECT score FROM regions
SELECT day FROM sales UNION SELECT at FROM sales
SELECT 1 UNION SELECT 2 INTERSECT SELECT 3
SELECT id FROM sales WHERE region IN (SELECT region FROM regions)
SELECT id FROM sales WHERE region NOT IN (SELECT region FROM regions)
SELECT id FROM sales WHERE region NOT IN (SELECT region FROM regions WHERE region IS NOT NULL)
SELECT id FROM sales WHERE region NOT IN (SELECT region FROM nothing)
SELECT id FROM sales WHERE qty IN (SELECT price FROM sales) OR qty IN (SELECT l FROM big)
SELECT id FROM sales s WHERE EXISTS (SELECT 1 FROM regions r WHERE r.region = s.region AND r.boss > 1)
SELECT id FROM sales s WHERE NOT EXISTS (SELECT 1 FROM regions r WHERE r.region = s.region)
SELECT id FROM sales WHERE price > (SELECT avg(price) FROM sales)
SELECT id, (SELECT max(name) FROM regions r WHERE r.region = s.region) AS name FROM sales s
SELECT id, (SELECT count(*) FROM regions r WHERE r.region = s.region) + 1 AS n FROM sales s
SELECT id, (SELECT boss FROM regions WHERE name = 'none') AS b FROM sales
SELECT region, count(*) FROM sales GROUP BY region HAVING count(*) >= (SELECT max(boss) - 1 FROM regions)
SELECT region, sum(qty), (SELECT max(boss) FROM regions) AS b FROM sales s GROUP BY region
SELECT id, row_number() OVER (ORDER BY id DESC) AS n, dense_rank() OVER (PARTITION BY score ORDER BY qty) AS d FROM sales
SELECT region, rank() OVER (ORDER BY sum(qty) DESC) AS r FROM sales GROUP BY region
SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY region ORDER BY price DESC, id) AS n FROM sales) WHERE n = 1
SELECT x.id FROM sales AS x (id, r, q, p, s, d, a, b) WHERE q > 1
SELECT y FROM (SELECT 100 / qty AS y FROM sales WHERE qty <> 0) WHERE y > 20
SELECT CAST(s AS int) AS i FROM (SELECT s FROM big WHERE s <> 'x') WHERE CAST(s AS int) > 1
SELECT a.id, a.n FROM (SELECT id, CAST(NULL AS int) AS n FROM sales) a WHERE a.n IS NULL
SELECT id FROM sales WHERE day BETWEEN date '2024-01-01' AND date '2024-12-31' AND at >= timestamp '2024-02-01 00:00:00'
SELECT CASE WHEN qty > 2 THEN 'many' ELSE 'few' END AS size, count(*) FROM sales GROUP BY size
SELECT 'all' AS tag, count(*) FROM sales GROUP BY 1
SELECT coalesce(region, '?') || '!' AS r, sum(coalesce(qty, 0)) FROM sales GROUP BY coalesce(region, '?')
SELECT count(*) FROM (SELECT DISTINCT region, qty FROM sales)
SELECT id, id FROM sales WHERE id < 3
SELECT id FROM sales WHERE score > 1.5
SELECT id FROM sales WHERE score >= double('NaN') OR score = -0.0
SELECT id FROM sales WHERE score = double('NaN')
SELECT id FROM sales WHERE score = 0
SELECT id FROM sales WHERE score <> 1.5 AND score < double('NaN')
SELECT id FROM sales WHERE score IN (0.0D, double('NaN')) AND NOT score > 5
SELECT id FROM sales WHERE score BETWEEN -1 AND 3
SELECT s.id FROM sales s JOIN (SELECT score FROM regions WHERE boss = 2) r ON s.score = r.score
SELECT id FROM sales WHERE price >= 5.00 AND price < 10.505 AND at > timestamp '2000-01-01 00:00:00' AND region > 'a'
SELECT id IN (SELECT boss FROM regions) AS b, qty NOT IN (SELECT boss FROM regions) AS c, id FROM sales
SELECT CASE WHEN NOT (id IN (SELECT boss FROM regions) AND qty > 2) THEN 'a' ELSE 'b' END AS k, id FROM sales
SELECT max(id) FILTER (WHERE region IN (SELECT region FROM regions)) AS m FROM sales
SELECT id FROM sales WHERE NOT (id NOT IN (SELECT boss FROM regions) OR qty > 3)
SELECT a.id FROM sales a WHERE a.qty = (SELECT max(b.qty) FROM sales b WHERE b.region = a.region)
SELECT a.id FROM sales a WHERE a.qty IN (SELECT b.qty FROM sales b WHERE b.region = a.region AND b.id <> a.id)
SELECT coalesce((SELECT max(boss) FROM regions WHERE region = s.region), -1) AS b, id FROM sales s
SELECT * FROM sales s LEFT SEMI JOIN regions r USING (region)
SELECT region FROM (SELECT region FROM sales) a FULL JOIN regions b USING (region) FULL JOIN (SELECT 'east' AS region) c USING (region)
SELECT a + 1, b FROM VALUES (1, 2.5), (3, NULL) AS v(a, b)
SELECT col1 FROM VALUES ('x'), ('y')
SELECT avg(CAST(0.5 AS decimal(38,37))) AS x, avg(CAST(0.5 AS decimal(38,38))) AS y
WITH a AS (SELECT 1 AS x), b AS (WITH a AS (SELECT 2 AS x) SELECT x FROM a) SELECT a.x, b.x AS y FROM a, b
SELECT /*+ BROADCAST(regions) */ count(*) FROM sales JOIN regions USING (region)
"""

FAILING = """
SELECT sum(l) FROM big WHERE k = 1 OR l > 0 UNION ALL SELECT sum(l) FROM (SELECT l FROM big UNION ALL SELECT l FROM big) WHERE l > 0
SELECT avg(w) FROM big
SELECT 10 / qty FROM sales
SELECT CAST(s AS int) FROM big
SELECT id FROM sales WHERE 10 / qty > 1
SELECT (SELECT boss FROM regions)
SELECT region, qty FROM sales GROUP BY region
SELECT nope FROM sales
SELECT score FROM sales JOIN regions ON sales.region = regions.region
SELECT id FROM sales WHERE count(*) > 1
SELECT id FROM sales UNION SELECT id, qty FROM sales
SELECT count(*) FROM sales GROUP BY 2
SELECT DISTINCT id FROM sales ORDER BY qty
SELECT a.id FROM sales s
SELECT row_number() OVER (PARTITION BY id) FROM sales
SELECT max(sum(qty)) FROM sales
SELECT id FROM missing
"""


def listed(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    mine = SparkContext._active_spark_context is None
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
    )
    # The whole test is shorter than the second compiler needs to pay off.
    builder = builder.config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
    session = builder.config("spark.driver.memory", "1g").getOrCreate()
    settings = {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        # rows stay in order, so sums of doubles have one value
        "spark.sql.leafNodeDefaultParallelism": "1",
        # Compiling a hundred plans for eight rows would take most of the time.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.crossJoin.enabled": "true",
    }
    before = {name: session.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        session.conf.set(name, value)
    for name, table in TABLES.items():
        session.createDataFrame(table).createOrReplaceTempView(name)
    yield session
    for name in TABLES:
        session.catalog.dropTempView(name)
    for name, old in before.items():
        session.conf.unset(name) if old is None else session.conf.set(name, old)
    if mine:
        session.stop()


def here(text: str) -> pa.Table:
    query = parse(text)
    names = [name.lower() for name in relations(query)]
    schemas = {
        n: Schema(tuple(Column(f.name, from_arrow(f.type)) for f in TABLES[n].schema))
        for n in names
        if n in TABLES
    }
    return run(translate(query, schemas), {n: TABLES[n] for n in schemas})


def there(session: SparkSession, text: str) -> tuple[list[str], pa.Table]:
    frame = session.sql(text)
    return [f.dataType.simpleString() for f in frame.schema.fields], frame.toArrow()


def comparable(table: pa.Table) -> list[tuple[Any, ...]]:
    """Rows that compare with ==; far dates have no Python value, and NaN is not equal to itself."""

    def column(data: pa.ChunkedArray) -> list[Any]:
        if pa.types.is_timestamp(data.type):
            data = data.cast(pa.int64())
        return [repr(v) if isinstance(v, float) else v for v in data.to_pylist()]

    return list(zip(*(column(c) for c in table.columns), strict=True))


def difference(session: SparkSession, text: str, in_order: bool) -> str | None:
    try:
        kinds, expected = there(session, text)
        actual = here(text)
    except (SqlError, PySparkException) as error:
        return f"{type(error).__name__}: {error}"
    types = [str(from_arrow(f.type)) for f in actual.schema]
    if types != kinds:
        return f"spark {kinds}, here {types}"
    left, right = comparable(expected), comparable(actual)
    if left == right if in_order else Counter(left) == Counter(right):
        return None
    return f"\n  spark {left}\n  here  {right}"


def test_every_query_gives_the_rows_and_types_of_spark(spark: SparkSession) -> None:
    queries = [(text, True) for text in listed(ORDERED)] + [(text, False) for text in listed(BAGS)]
    assert len(queries) >= 100
    results = [difference(spark, *query) for query in queries]
    found = [f"{text}: {what}" for (text, _), what in zip(queries, results, strict=True) if what]
    assert not found, f"{len(found)} of {len(queries)} differ:\n" + "\n".join(found)


def test_what_fails_in_spark_fails_here(spark: SparkSession) -> None:
    for text in listed(FAILING):
        with pytest.raises((PySparkException, Py4JJavaError)):
            there(spark, text)
        with pytest.raises(SqlError):
            here(text)
