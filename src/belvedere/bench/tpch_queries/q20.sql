-- The correlated sum is a grouped subquery, joined by part and supplier; without ORDER BY.
SELECT s_name, s_address, s_suppkey
FROM supplier, nation
WHERE s_suppkey IN (
        SELECT ps_suppkey
        FROM partsupp
        JOIN (
            SELECT l_partkey, l_suppkey, sum(l_quantity) AS shipped
            FROM lineitem
            WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
            GROUP BY l_partkey, l_suppkey
        ) AS year ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey
        WHERE ps_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE 'forest%') AND ps_availqty > 0.5 * shipped
    )
  AND s_nationkey = n_nationkey AND n_name = 'CANADA'
