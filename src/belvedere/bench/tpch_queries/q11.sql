-- The scalar subquery is a one-row aggregate, joined on a constant: any change of the total compares every part again. The fraction is
-- 0.005 instead of 0.0001, which belongs to scale factor 1; without ORDER BY.
WITH german AS (
    SELECT ps_partkey, CAST(ps_supplycost * ps_availqty AS DECIMAL(26,2)) AS worth
    FROM partsupp, supplier, nation
    WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY'
), parts AS (
    SELECT 1 AS one, ps_partkey, CAST(sum(worth) AS DECIMAL(28,2)) AS value FROM german GROUP BY ps_partkey
), whole AS (
    SELECT 1 AS one, CAST(sum(worth) AS DECIMAL(28,2)) AS total FROM german
)
SELECT ps_partkey, value
FROM parts JOIN whole ON parts.one = whole.one
WHERE value > total * 0.005
