"""What a query means, before anything is done with it: every name bound to a column, once.

    purpose.py      who reads the query, a view or a query that is answered once, and how it refuses
    binding.py      bound columns, and expressions known by their text
    names.py        the columns in sight, and those of the query around
    sources.py      FROM: what stands in it, how it is joined, which columns USING merges
    clauses.py      the select list, GROUP BY, HAVING, QUALIFY, ORDER BY
    conjuncts.py    conditions taken apart
    calls.py        aggregate calls
    combining.py    UNION, INTERSECT and EXCEPT
    values.py       bound expressions lowered over the values that a back end has
    parentheses.py  parentheses in FROM

There are two back ends. `sql.plan` makes the maintenance graph of a view of what is bound here, and
`sql.query` the text of a query for DuckDB. They decide what is done; what a name means, and what is
no SQL at all, is decided here.
"""
