-- The correlated average is a grouped subquery, joined by part.
SELECT sum(l_extendedprice) / 7.0 AS avg_yearly
FROM lineitem
JOIN part ON p_partkey = l_partkey
JOIN (SELECT l_partkey AS partkey, avg(l_quantity) AS usual FROM lineitem GROUP BY l_partkey) AS averages ON partkey = p_partkey
WHERE p_brand = 'Brand#23' AND p_container = 'MED BOX' AND l_quantity < 0.2 * usual
