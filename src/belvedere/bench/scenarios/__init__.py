"""One module per figure. Each has `run(settings) -> Results` and can be started on its own:

python -m belvedere.bench.scenarios.maintain --work bench-out --views V2,V_all

ingest                  durable writes of the base table
maintain                views from a backlog, on a table that already holds rows
end_to_end              writer and pipeline in two processes, until the last operation is visible
freshness               ten operations written until visible, beside an empty Spark job
flatness                cost of an operation while the base table grows
single_put              one durable put beside one LMDB transaction
transactions            operations in a transaction beside plain calls
reads                   point reads and scans of views
why                     of which base rows a record of V1 to V5 is made
keyed                   SELECT, UPDATE and DELETE by key beside get and put
base_write_with_views   the writer's rate with no and with ten views
memory                  the pipeline's peak under a large backlog
join                    the join V5: from a backlog, end to end, and against the number of matches
many_views              two hundred views that share ten aggregates, beside ten
tpch                    cost of a changed row for TPC-H's Q3 and Q5 while the tables grow
sources                 first copies, backlogs, load and freshness of a PostgreSQL and a MariaDB
hbase                   capture, maintenance, writers and freshness on a real HBase, if it is there
fan_out                 one row that a million rows of a join depend on
"""
