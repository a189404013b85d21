"""What happens to HBase and to Spark while the soak runs."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from belvedere.processes import start_time
from belvedere.stores.hbase.jvm import java_class
from belvedere.stores.hbase.local import Cluster
from tests.hbase.processes import child_ids, command_of, descendants
from tests.hbase.soak_driver import Driver
from tests.hbase.soak_tables import TABLES, SoakTable
from tests.hbase.spark_cluster import SparkCluster
from tests.hbase.users import User

# how often each is drawn, against the others
WEIGHTS = {
    "region server": 5,
    "master": 3,
    "executor": 4,
    "worker": 2,
    "driver": 4,
    "pause": 4,
    "move": 4,
    "move of state": 3,
    "split": 3,
    "merge": 3,
    "flush": 2,
    "compaction": 2,
    "balance": 1,
}
_LONGEST_PAUSE = 20.0  # seconds


class Refused(Exception):
    """A fault that cannot be done now; another one is drawn."""


@dataclass
class Faults:
    """`counts` has how often each was done. What HBase refuses (it merges no regions that split)
    counts as refused.
    """

    cluster: Cluster
    spark: SparkCluster
    driver: Driver
    user: User
    namespace: str
    dice: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    _paused: list[tuple[float, int, int]] = field(default_factory=list)  # until when, id, its start

    def draw(self) -> str:
        """Do one, by chance; returns which."""
        name = self.dice.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        self.do(name)
        return name

    def do(self, name: str) -> bool:
        throwable = java_class("java.lang.Throwable")
        try:
            getattr(self, "_" + name.replace(" ", "_"))()
        except (Refused, throwable):
            self.counts[f"{name} refused"] += 1
            return False
        self.counts[name] += 1
        return True

    def resume(self, all_of_them: bool = False) -> None:
        """Let paused processes go on whose time is over."""
        now, left = time.monotonic(), []
        for until, pid, started in self._paused:
            if until > now and not all_of_them:
                left.append((until, pid, started))
            elif start_time(pid) == started:  # not one that got the same number later
                os.kill(pid, signal.SIGCONT)
        self._paused = left

    # ---- processes

    def _region_server(self) -> None:
        servers = [p for p in self.cluster.running() if p.kind == "region-server"]
        known = self.user.admin.getRegionServers().size()
        if known < len(servers) or len(servers) < 2:
            raise Refused("one of them is not back yet")
        name = self.dice.choice(servers).name
        self.cluster.kill(name)
        self.cluster.start(name)

    def _master(self) -> None:
        self.cluster.kill("master")
        self.cluster.start("master")

    def _executor(self) -> None:
        os.kill(self._some_executor(), signal.SIGKILL)

    def _worker(self) -> None:
        number = self.dice.choice(self.spark.workers)
        self.spark.kill_worker(number)
        self.spark.start_worker(number)

    def _driver(self) -> None:
        self.driver.kill()

    def _pause(self) -> None:
        """Stop a Python worker of an executor: its attempt stands still, and goes on late."""
        below = descendants(self._some_executor())
        daemons = [pid for pid in below if "pyspark.daemon" in command_of(pid)]
        workers = [child for daemon in daemons for child in child_ids(daemon)]
        if not workers:
            raise Refused("the executor has no task")
        pid = self.dice.choice(workers)
        until = time.monotonic() + self.dice.uniform(1, _LONGEST_PAUSE)
        self._paused.append((until, pid, start_time(pid)))
        os.kill(pid, signal.SIGSTOP)

    def _some_executor(self) -> int:
        executors = self.spark.executors()
        if not executors:
            raise Refused("there is no executor now")
        return self.dice.choice(executors)

    # ---- regions

    def _move(self) -> None:
        self._move_one(self._some_table().name)

    def _move_of_state(self) -> None:
        self._move_one(self._some_state())

    def _move_one(self, name: str) -> None:
        if self.user.admin.getRegionServers().size() < 2:
            raise Refused("there is nowhere to go")
        self.user.move(name, self.dice.choice(self.user.regions(name)))

    def _split(self) -> None:
        table = self._some_table()
        row = self.dice.choice(table.rows)
        region = next(each for each in self.user.regions(table.name) if each.containsRow(row))
        self.user.split(region, row)

    def _merge(self) -> None:
        regions = self.user.regions(self._some_table().name)
        if len(regions) < 2:
            raise Refused("the table has one region")
        ordered = sorted(regions, key=lambda each: bytes(each.getStartKey()))
        first = self.dice.randrange(len(ordered) - 1)
        self.user.merge(*ordered[first : first + 2])

    def _flush(self) -> None:
        self.user.admin.flush(_table_name(self._any_table()))

    def _compaction(self) -> None:
        name = _table_name(self._any_table())
        self.user.admin.flush(name)
        self.user.admin.majorCompact(name)

    def _balance(self) -> None:
        self.user.admin.balance()

    def _some_table(self) -> SoakTable:
        return self.dice.choice(TABLES)

    def _some_state(self) -> str:
        names = self.user.admin.listTableNamesByNamespace(self.namespace)
        return self.dice.choice(sorted(str(name.getNameAsString()) for name in names))

    def _any_table(self) -> str:
        return self.dice.choice([self._some_table().name, self._some_state()])


def _table_name(name: str) -> Any:
    return java_class("org.apache.hadoop.hbase.TableName").valueOf(name)
