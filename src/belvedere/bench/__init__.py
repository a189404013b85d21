"""Belvedere measured beside its peers, on one machine and in one run.

workload.py     the operation log every engine is given: same seed, same operations, bit for bit;
                workload_join.py for two tables
tpch.py         TPC-H: tables, rows, queries as views; tpch_changes.py sets them in motion and knows
                the right answers
catalog.py        the views V1..V5 and V_all
oracle.py       what each view must hold at the end, computed from the log by DuckDB
peers/          two engines small enough to ship: LMDB by hand, DuckDB with recomputation
scenarios/      one module per figure of ours
suite.py        runs peers and scenarios, each in a fresh process, and gathers the results
results.py      the results as dataclasses, JSON in and out
targets.py      what we want to reach, and whether a run did
figures.py      what engines that are not run here reached on the same workload
report.py       tables of a run; chart.py draws it
"""
