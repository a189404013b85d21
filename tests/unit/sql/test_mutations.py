"""Statements with words dropped, swapped, doubled or taken from others: whatever comes out is
obeyed or refused with a message.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import pairwise

import pytest

import belvedere
from belvedere.errors import BelvedereError
from belvedere.expressions import SUPPORTED
from belvedere.expressions.calls import CALLS

WORD = re.compile(r"'[^']*'|`[^`]*`|\w+|<=>|<=|>=|<>|\|\||\s+|.")
COLUMNS = (
    "b boolean, i int, j int, l bigint, d double, m decimal(10,2), s string, q string, r string, x"
    " binary, dt date, ts timestamp"
)
QUERIES = """
SELECT id, i + 1 AS n, upper(s) AS s FROM t WHERE b AND i > -1 OR s LIKE 'a%'
SELECT g, count(*) AS n, sum(i) AS total, count(DISTINCT s) FILTER (WHERE b) AS c FROM t GROUP BY g HAVING count(*) > 1
SELECT g AS k, max(d) AS m, count_if(i > 2) AS c FROM t GROUP BY 1
SELECT DISTINCT g, s FROM t WHERE s IN ('a', 'b') AND NOT b
SELECT t.id, u.k FROM t JOIN u ON t.g = u.k AND t.i < u.n
SELECT t.id, u.k FROM t LEFT JOIN u USING (k) WHERE t.i IS NOT NULL
SELECT id FROM t WHERE g IN (SELECT k FROM u WHERE n > 1)
SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.g)
SELECT id, i FROM t ORDER BY i DESC, id LIMIT 3
SELECT id, g FROM t QUALIFY row_number() OVER (PARTITION BY g ORDER BY i, id) <= 2
WITH a AS (SELECT g, count(*) AS n FROM t GROUP BY g) SELECT a.g, u.n FROM a JOIN u ON a.g = u.k
SELECT g FROM t UNION ALL SELECT k FROM u EXCEPT SELECT 1 AS g FROM u
SELECT CASE WHEN i > 1 THEN 'a' ELSE s END AS c, CAST(i AS string) AS t, d::int AS f, 1E3 + i AS e FROM t
SELECT dt + interval 1 day AS a, extract(year FROM dt) AS y, trunc(dt, 'MM') AS m, substring(s FROM 2 FOR 1) AS p FROM t
""".strip().splitlines()
STATEMENTS = """
CREATE TABLE q (a INT NOT NULL, b STRING, c DECIMAL(5,2), PRIMARY KEY (a)) WITH (before_images = false)
CREATE OR REPLACE MATERIALIZED VIEW w WITH (key = 'g, i') AS SELECT g, i, id FROM t
DROP MATERIALIZED VIEW IF EXISTS w, v
DROP TABLE IF EXISTS q, p
INSERT INTO t (id, i, s) VALUES (1, 2, 'a'), (3, 4 + 1, NULL)
INSERT INTO u SELECT g, i, id FROM t WHERE i IS NOT NULL
UPDATE t SET i = i + 1, s = 'x' WHERE g = 1 AND b
DELETE FROM t WHERE id = 3
SHOW CREATE TABLE t
DESCRIBE t
EXPLAIN COST SELECT g, count(*) AS n FROM t GROUP BY g
""".strip().splitlines()


@pytest.fixture
def db() -> Iterator[belvedere.Database]:
    with belvedere.open("memory:") as opened:
        opened.sql(f"CREATE TABLE t (id INT PRIMARY KEY, g INT, k INT, {COLUMNS})")
        opened.sql("CREATE TABLE u (k INT PRIMARY KEY, n INT, m INT)")
        yield opened


def mutated(chance: random.Random, text: str, words: list[str]) -> str:
    parts = WORD.findall(text)
    for _ in range(chance.choice((1, 1, 2, 3))):
        at, kind = chance.randrange(len(parts)), chance.random()
        if kind < 0.4:
            parts[at] = chance.choice(words)
        elif kind < 0.65:
            parts[at] = ""
        elif kind < 0.85:
            parts.insert(at, f" {chance.choice(words)} ")
        else:
            other = chance.randrange(len(parts))
            parts[at], parts[other] = parts[other], parts[at]
    return "".join(parts)


def words_in(texts: list[str]) -> list[str]:
    return [word for text in texts for word in WORD.findall(text) if word.strip()]


def failure(db: belvedere.Database, statement: str) -> str:
    """What is not a message for users; a query is also answered, and not only planned as a view."""
    try:
        answer = db.sql(statement)
        if statement.lstrip(" (").upper().startswith(("SELECT", "WITH")):
            answer.to_arrow()
    except BelvedereError:
        return ""
    except Exception as error:  # what is looked for: anything that is not a message
        return f"{statement}\n    {type(error).__name__}: {error}"
    return ""


def test_a_mutated_query_is_planned_or_refused(db: belvedere.Database) -> None:
    chance, words = random.Random(1), words_in(QUERIES)
    texts = [mutated(chance, chance.choice(QUERIES), words) for _ in range(600)]
    found = [failure(db, prefix + text) for text in texts for prefix in ("", "EXPLAIN ")]
    assert not list(filter(None, found))


def test_a_mutated_expression_is_planned_or_refused(db: belvedere.Database) -> None:
    examples = [example for row in SUPPORTED for example in row.examples]
    chance, words = (
        random.Random(2),
        [
            *words_in(examples),
            "()",
            "(,",
            ",)",
            "FROM",
            "DISTINCT",
            "NULL",
            "*",
        ],
    )
    texts = [mutated(chance, chance.choice(examples), words) for _ in range(1200)]
    assert not list(
        filter(None, (failure(db, f"EXPLAIN SELECT id, {text} AS c FROM t") for text in texts))
    )


def test_a_mutated_statement_is_obeyed_or_refused(db: belvedere.Database) -> None:
    chance, words = random.Random(3), words_in(STATEMENTS)
    texts = [mutated(chance, chance.choice(STATEMENTS), words) for _ in range(500)]
    assert not list(filter(None, (failure(db, text) for text in texts)))


def test_a_call_with_any_number_of_arguments_is_planned_or_refused(db: belvedere.Database) -> None:
    words = [
        pair
        for row in SUPPORTED
        for example in row.examples
        for pair in pairwise(WORD.findall(example))
    ]
    names = sorted(
        {*CALLS, *(word for word, after in words if after == "(" and word.isidentifier())}
    )
    calls = [
        f"{name}({', '.join([value] * count)})"
        for name in names
        for count in range(6)
        for value in "is"
    ]
    assert not list(
        filter(None, (failure(db, f"EXPLAIN SELECT id, {call} AS c FROM t") for call in calls))
    )
