-- The correlated minimum is a grouped subquery, joined by part and cost. The order is made total by the keys.
WITH european AS (
    SELECT ps_partkey, ps_supplycost, s_suppkey, s_acctbal, s_name, n_name, s_address, s_phone, s_comment
    FROM partsupp, supplier, nation, region
    WHERE s_suppkey = ps_suppkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE'
), cheapest AS (
    SELECT ps_partkey AS partkey, min(ps_supplycost) AS cost FROM european GROUP BY ps_partkey
)
SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment, s_suppkey
FROM part
JOIN cheapest ON p_partkey = partkey
JOIN european ON ps_partkey = partkey AND ps_supplycost = cost
WHERE p_size = 15 AND p_type LIKE '%BRASS'
ORDER BY s_acctbal DESC, n_name, s_name, p_partkey, s_suppkey
LIMIT 100
