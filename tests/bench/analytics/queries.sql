-- name: query, one a line. All of them give few rows, so the time is the server's.
count_all: SELECT COUNT(*) FROM typed
count_plain: SELECT COUNT(*) FROM plain
sum_filter: SELECT SUM(quantity), COUNT(*) FROM typed WHERE quantity < 500
sum_wide_rows: SELECT SUM(k) FROM plain WHERE id > 1000
sum_expression: SELECT SUM(price * (1 - discount / 100)) FROM typed WHERE quantity > 100
average_decimal: SELECT AVG(price), AVG(discount) FROM typed
minimum_maximum: SELECT MIN(price), MAX(price), MIN(moment), MAX(day) FROM typed
group_few: SELECT customer % 8 AS g, COUNT(*), SUM(quantity), AVG(price) FROM typed GROUP BY g ORDER BY g
group_text: SELECT region, COUNT(*), SUM(price) FROM typed GROUP BY region ORDER BY region
group_many: SELECT COUNT(*), SUM(s) FROM (SELECT code, SUM(quantity) AS s FROM typed GROUP BY code) x
group_text_many: SELECT COUNT(*) FROM (SELECT name, COUNT(*) FROM typed GROUP BY name) x
distinct_few: SELECT DISTINCT region FROM typed ORDER BY region
distinct_many: SELECT COUNT(DISTINCT code) FROM typed
join_key: SELECT c.class, COUNT(*), SUM(t.price) FROM typed t JOIN customers c ON c.id = t.customer GROUP BY c.class ORDER BY c.class
join_no_index: SELECT COUNT(*), SUM(t.quantity) FROM typed t JOIN customers c ON c.code = t.code WHERE c.id <= 100
order_limit: SELECT id, price FROM typed ORDER BY price DESC, id LIMIT 10
order_text_limit: SELECT id, name FROM typed ORDER BY name, id LIMIT 10
order_all: SELECT COUNT(*) FROM (SELECT id, price FROM typed ORDER BY price LIMIT 1000000) x
date_filter: SELECT COUNT(*), SUM(price) FROM typed WHERE day BETWEEN '2020-01-01' AND '2020-12-31'
moment_filter: SELECT COUNT(*) FROM typed WHERE moment >= '2021-01-01' AND moment < '2021-07-01 12:00:00'
year_group: SELECT YEAR(day) AS y, COUNT(*) FROM typed GROUP BY y ORDER BY y
like_prefix: SELECT COUNT(*) FROM typed WHERE name LIKE 'Name 3%'
like_inner: SELECT COUNT(*) FROM plain WHERE c LIKE '%abc%'
in_list: SELECT COUNT(*) FROM typed WHERE quantity IN (3, 77, 150, 333, 421, 500, 707, 808, 900, 999)
in_text: SELECT COUNT(*) FROM typed WHERE region IN ('Region 3', 'Region 7', 'region 11')
null_filter: SELECT COUNT(*) FROM typed WHERE quantity IS NULL OR discount IS NOT NULL AND discount > 20
case_sum: SELECT SUM(CASE WHEN quantity > 500 THEN price ELSE 0 END) FROM typed
