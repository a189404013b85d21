"""The commands: where each is, what it does in one line, and examples.

A test holds the lines against the functions themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

READ_AND_WRITE, KEEP, TRY = "Tables and views", "Keeping views up to date", "Start here"


@dataclass(frozen=True, slots=True)
class Listed:
    """`home` is the module below `cli` with a function of the same name; `database` says whether
    the command takes --db.
    """

    name: str
    home: str
    panel: str
    line: str
    examples: tuple[str, ...]
    database: bool = True


COMMANDS = (
    Listed(
        "demo",
        "demo",
        TRY,
        "Watch a shop's views stay correct while orders stream in.",
        (
            "belvedere demo",
            "belvedere demo shop --seconds 60 --rate 20000",
            "belvedere demo --hbase",
            "belvedere demo --sources",
        ),
        database=False,
    ),
    Listed(
        "init",
        "init",
        TRY,
        "Create a database in a new or empty directory.",
        ("belvedere init shop", "belvedere init shop --slots 8"),
        database=False,
    ),
    Listed(
        "sql",
        "sql",
        READ_AND_WRITE,
        "Run a statement, a script, or a prompt.",
        (
            (
                'belvedere --db shop sql "CREATE TABLE orders (id STRING, region STRING, amount'
                ' BIGINT, PRIMARY KEY (id))"'
            ),
            'belvedere --db shop sql "SELECT * FROM revenue ORDER BY total DESC" --json',
            'belvedere --db shop sql "SELECT * FROM orders WHERE id = :id" --param id=o1',
            "belvedere --db shop sql -f views.sql",
            "belvedere --db shop sql            # a prompt, with history; statements end with ;",
        ),
    ),
    Listed(
        "put",
        "put",
        READ_AND_WRITE,
        "Insert or overwrite one row.",
        (
            "belvedere put orders id=o1 region=emea amount=7",
            """belvedere put orders '{"id": "o1", "region": "emea", "amount": 7}'""",
        ),
    ),
    Listed(
        "get",
        "get",
        READ_AND_WRITE,
        "Show the row under a key of a table or view.",
        (
            "belvedere get orders o1",
            "belvedere get by_customer c17 o1 --json",
            "belvedere get readings -- -5",
        ),
    ),
    Listed(
        "delete",
        "delete",
        READ_AND_WRITE,
        "Delete the row under a key of a table.",
        ("belvedere delete orders o1", "belvedere delete lines o1 2     # a key of two columns"),
    ),
    Listed(
        "import",
        "import_rows",
        READ_AND_WRITE,
        "Import a file into a table.",
        (
            "belvedere import orders orders.csv",
            "belvedere import orders orders.parquet --batch 100000",
            "belvedere import orders dirty.jsonl --skip-bad",
            "belvedere import orders wide.parquet --ignore-others",
            "zcat orders.csv.gz | belvedere import orders - --format csv",
        ),
    ),
    Listed(
        "export",
        "export",
        READ_AND_WRITE,
        "Write the rows of a table or view to a file.",
        (
            "belvedere export revenue revenue.parquet",
            "belvedere export orders orders.csv --null '\\N'",
            "belvedere export by_customer - c17 --format jsonl | gzip > c17.jsonl.gz",
        ),
    ),
    Listed(
        "scan",
        "scan",
        READ_AND_WRITE,
        "List rows of a table or view in key order.",
        (
            "belvedere scan orders --limit 10",
            "belvedere scan by_customer c17",
            "belvedere scan revenue --json | jq .total",
        ),
    ),
    Listed(
        "views",
        "views",
        READ_AND_WRITE,
        "List the views: their state, key and SELECT.",
        ("belvedere views", "belvedere views --json"),
    ),
    Listed(
        "explain",
        "explain",
        READ_AND_WRITE,
        "Show how a view is maintained, or what it will cost.",
        (
            "belvedere explain revenue",
            'belvedere explain "SELECT region, max(amount) AS m FROM orders GROUP BY region"',
        ),
    ),
    Listed(
        "why",
        "why",
        READ_AND_WRITE,
        "Show which base rows make up a record of a view.",
        (
            "belvedere why revenue emea",
            "belvedere why by_customer c17 o1 --as-of 41",
            "belvedere why revenue apac --json      # there is none: what is missing",
        ),
    ),
    Listed(
        "changes",
        "changes",
        READ_AND_WRITE,
        "Print what every epoch changed in a view.",
        (
            "belvedere changes revenue --since 41",
            "belvedere changes revenue --consumer billing --follow",
            "belvedere changes revenue --consumer billing --drop",
        ),
    ),
    Listed(
        "run",
        "run",
        KEEP,
        "Keep all views up to date until Ctrl-C.",
        (
            "belvedere --db shop run",
            "belvedere --db shop run --every 10",
            "belvedere --db shop run --available-now",
        ),
    ),
    Listed(
        "catch-up",
        "catch_up",
        KEEP,
        "Bring everything written so far into every view.",
        ("belvedere --db shop catch-up", "belvedere --db shop catch-up --timeout 60 --json"),
    ),
    Listed(
        "status",
        "status",
        KEEP,
        "Show every view's state and lag, and recent epochs.",
        (
            "belvedere status",
            "belvedere status --watch",
            "belvedere status --json | jq '.views[].lag_operations'",
        ),
    ),
    Listed(
        "history",
        "history",
        KEEP,
        "Show or say how much of the past can be read.",
        (
            "belvedere history",
            "belvedere history --epochs 1000 --seconds 3600",
            "belvedere get revenue emea --as-of '2026-11-18 15:30:00'",
        ),
    ),
    Listed(
        "verify",
        "verify",
        KEEP,
        "Compare views with what Spark SQL computes.",
        (
            "belvedere verify",
            "belvedere verify revenue --repair",
            "belvedere verify revenue --repair --yes",
            "belvedere verify --base orders",
        ),
    ),
    Listed(
        "inspect",
        "inspect",
        KEEP,
        "Read everything in the directory and say what is damaged.",
        ("belvedere --db shop inspect", "belvedere --db shop inspect --json"),
    ),
    Listed(
        "rebuild",
        "rebuild",
        KEEP,
        "Build views anew from their tables.",
        ("belvedere --db shop rebuild revenue", "belvedere --db shop rebuild revenue by_customer"),
    ),
    Listed(
        "salvage",
        "salvage",
        KEEP,
        "Keep what is intact of tables whose rows are damaged.",
        ("belvedere --db shop salvage", "belvedere --db shop salvage --yes"),
    ),
    Listed(
        "metrics",
        "metrics",
        KEEP,
        "Print the status as Prometheus text.",
        ("belvedere metrics", "belvedere metrics > /var/lib/node_exporter/belvedere.prom"),
    ),
    Listed(
        "backup",
        "backup",
        KEEP,
        "Copy the database, as of one moment, while others use it.",
        (
            "belvedere --db shop backup /backups/monday",
            "belvedere --db shop backup /mnt/tuesday --base /mnt/monday",
        ),
    ),
    Listed(
        "check",
        "check",
        KEEP,
        "Judge what readers saw against what was written.",
        (
            "belvedere check shop.history",
            "belvedere check shop.history --level complete --json",
        ),
        database=False,
    ),
    Listed(
        "restore",
        "restore",
        KEEP,
        "Make a database in a new directory of a backup.",
        ("belvedere restore /backups/monday shop-again",),
        database=False,
    ),
    Listed(
        "compact",
        "compact",
        KEEP,
        "Give room back to the file system.",
        ("belvedere --db shop compact", "belvedere compact --json"),
    ),
    Listed(
        "hbase",
        "hbase",
        TRY,
        "Start a real HBase on this machine, or prepare another one.",
        (
            "belvedere hbase up /tmp/hb --json",
            "belvedere hbase status /tmp/hb",
            "belvedere hbase down /tmp/hb",
            "belvedere hbase install hbase://zk:2181/shop?capture=/mnt/shared/capture",
        ),
        database=False,
    ),
    Listed(
        "sources",
        "sources",
        TRY,
        "Start a real PostgreSQL and a real MariaDB on this machine.",
        (
            "belvedere sources up /tmp/sources --json",
            "belvedere sources status /tmp/sources",
            "belvedere sources down /tmp/sources --only mariadb",
        ),
        database=False,
    ),
    Listed(
        "bench",
        "bench",
        TRY,
        "Measure this machine, beside peers.",
        (
            "belvedere bench --quick",
            "belvedere bench --views V2,V3 --scenarios maintain,freshness --json results.json",
            "belvedere bench --plot throughput.png",
        ),
        database=False,
    ),
)
