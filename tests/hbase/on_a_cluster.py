"""What `test_spark_cluster.py` runs in a process of its own: views over a table of HBase, kept by a
standalone Spark cluster, and compared with what Spark SQL computes.

python -m tests.hbase.on_a_cluster URL MASTER TABLE DIRECTORY
"""

from __future__ import annotations

import sys
from pathlib import Path

import belvedere

ROWS = 3_000


def main(url: str, master: str, table: str, directory: str) -> None:
    """`directory` is where changes are captured: each task of the adoption's scan has a file."""
    with belvedere.open(url, master=master, slots=4, grace=0) as db:
        db.sql(
            "CREATE TABLE orders (id STRING, region STRING, amount BIGINT, PRIMARY KEY (id))"
            f" USING hbase OPTIONS (table = '{table}', columns = 'region = f:a, amount = f:b')"
        )
        orders = db.table("orders")
        rows = [{"id": f"o{i}", "region": f"r{i % 7}", "amount": i} for i in range(ROWS)]
        orders.put_many(rows)
        db.sql(
            "CREATE MATERIALIZED VIEW totals AS"
            " SELECT region, count(*) AS n, sum(amount) AS total FROM orders GROUP BY region"
        )
        db.catch_up()
        scanned = {file.name for file in Path(directory).glob("scan_*.frames")}
        orders.put_many([{**row, "region": "moved"} for row in rows[::3]])
        orders.delete_many([f"o{i}" for i in range(0, ROWS, 10)])
        db.catch_up()
        found = db.verify("totals")
        assert found.ok, found
        executors = db.spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
        left = sum(row["n"] for row in db.view("totals").scan())
        print(f"executors={executors} rows={left} scans={len(scanned)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
