-- The scalar average is a one-row aggregate, joined on a constant: any change of it compares every customer again; without ORDER BY.
WITH chosen AS (
    SELECT 1 AS one, c_custkey, substring(c_phone, 1, 2) AS cntrycode, c_acctbal
    FROM customer
    WHERE substring(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17')
), usual AS (
    SELECT 1 AS one, avg(c_acctbal) AS balance FROM chosen WHERE c_acctbal > 0.00
)
SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal
FROM chosen JOIN usual ON chosen.one = usual.one
WHERE c_acctbal > balance AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)
GROUP BY cntrycode
