"""From a SELECT to the nodes of its maintenance graph. Its names are bound in `sql.front`.

    queries.py         any query: WITH, set operations, ORDER BY and LIMIT after them
    selects.py         one SELECT, its clauses in the order of SQL
    sources.py         FROM: tables, views, subqueries and definitions of WITH as relations
    joining.py         FROM and WHERE as one relation
    conditions.py      conjuncts, and what each of them refers to
    order.py           in which order relations are joined
    join.py            two relations arranged by a key and joined
    subqueries.py      subqueries in WHERE, and how they hang together with the query around
    membership.py      EXISTS, IN and their negations: semi and anti joins
    aggregation.py     GROUP BY, DISTINCT
    ranking.py         ROW_NUMBER() with a bound, ORDER BY with LIMIT: the first rows
    set_operations.py  UNION, INTERSECT, EXCEPT
    sink.py            the end of a view
    relation.py        rows that a query stands on: a Select that has not been made yet, over nodes
                       that have
    identity.py        what makes a row unique
    nodes.py           the nodes so far; equal ones over equal inputs are one
    context.py         the tables, views and common table expressions in sight
    refusal.py         what is not maintained

A query is planned from the inside out. Stateless steps are carried along until an operator with
state needs rows.
"""
