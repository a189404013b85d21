-- As in TPC-H; the share is divided as doubles.
SELECT CAST(100.00 AS DOUBLE)
       * CAST(sum(CASE WHEN p_type LIKE 'PROMO%' THEN CAST(l_extendedprice * (1 - l_discount) AS DECIMAL(28,4)) ELSE 0 END) AS DOUBLE)
       / CAST(sum(CAST(l_extendedprice * (1 - l_discount) AS DECIMAL(28,4))) AS DOUBLE) AS promo_revenue
FROM lineitem, part
WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'
