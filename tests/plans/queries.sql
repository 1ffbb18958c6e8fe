# One table: points, ranges, skew
SELECT COUNT(*) FROM orders o WHERE o.status = 2
SELECT COUNT(note) FROM orders o WHERE o.status = 2
SELECT COUNT(note) FROM orders o WHERE o.status = 0
SELECT COUNT(note) FROM orders o WHERE o.placed BETWEEN 100 AND 130
SELECT COUNT(note) FROM orders o WHERE o.placed > 20
SELECT COUNT(note) FROM orders o WHERE o.customer_id = 3 AND o.placed > 500
SELECT COUNT(note) FROM orders o WHERE o.customer_id = 3 AND o.status = 2
SELECT COUNT(note) FROM orders o WHERE o.status = 1 AND o.placed < 20
SELECT COUNT(note) FROM orders o WHERE o.customer_id IN (5, 1900, 1950) AND o.placed < 900
SELECT COUNT(pad) FROM customer c WHERE c.region_id = 0 AND c.city = 'c7'
SELECT COUNT(pad) FROM customer c WHERE c.code < 90 AND c.region_id = 0
SELECT COUNT(pad) FROM customer c WHERE c.city LIKE 'c14%' AND c.region_id = 3
SELECT COUNT(*) FROM pair p WHERE p.x = 7 AND p.y = 300
SELECT COUNT(z) FROM pair p WHERE p.x = 7 AND p.y < 100
SELECT COUNT(z) FROM pair p WHERE p.x IN (1, 2, 3) AND p.y = 17
SELECT COUNT(v) FROM two_keys t WHERE t.k = 5 AND t.m = 1
SELECT COUNT(v) FROM two_keys t WHERE t.k = 100 AND t.m = 1
SELECT COUNT(v) FROM two_keys t WHERE t.k > 9000 AND t.m = 1
SELECT COUNT(*) FROM flat f WHERE f.a = 77
SELECT COUNT(*) FROM item i WHERE i.order_id BETWEEN 40 AND 60
# ORDER BY and LIMIT
SELECT id, note FROM orders o ORDER BY o.placed LIMIT 10
SELECT id, note FROM orders o ORDER BY o.total LIMIT 10
SELECT id, note FROM orders o WHERE o.status = 2 ORDER BY o.placed LIMIT 5
SELECT id, note FROM orders o WHERE o.status = 0 ORDER BY o.placed LIMIT 5
SELECT id, note FROM orders o WHERE o.customer_id = 1 ORDER BY o.placed DESC LIMIT 3
SELECT id, note FROM orders o WHERE o.total < 10 ORDER BY o.placed LIMIT 2000
SELECT id, pad FROM customer c WHERE c.balance = 17 ORDER BY c.code LIMIT 3
SELECT id, amount FROM event e WHERE e.kind = 0 ORDER BY e.at LIMIT 20
SELECT id, amount FROM event e ORDER BY e.at DESC LIMIT 20
SELECT customer_id, COUNT(*) FROM orders o GROUP BY o.customer_id
SELECT status, SUM(total) FROM orders o GROUP BY o.status
SELECT DISTINCT city FROM customer c
SELECT MIN(placed), MAX(placed) FROM orders o
# Two tables
SELECT COUNT(*) FROM orders o, customer c WHERE c.id = o.customer_id AND o.placed = 99
SELECT COUNT(c.pad) FROM orders o, customer c WHERE c.id = o.customer_id AND c.city = 'c3'
SELECT COUNT(c.pad) FROM orders o, customer c WHERE c.id = o.customer_id AND o.status = 2
SELECT COUNT(c.pad) FROM orders o, customer c WHERE c.id = o.customer_id
SELECT COUNT(o.note) FROM event e, orders o WHERE e.customer_id = o.customer_id AND e.kind = 3
SELECT COUNT(*) FROM event e, customer c WHERE e.amount = c.balance AND c.region_id = 5
SELECT COUNT(*) FROM flat f, customer c WHERE f.b = c.id AND f.a < 10
SELECT COUNT(*) FROM flat f, flat g WHERE f.a = g.a AND f.b = 3
SELECT COUNT(*) FROM flat f, product p WHERE f.b = p.category AND p.price < 5
SELECT COUNT(*) FROM single s, orders o WHERE o.id = s.id
SELECT COUNT(*) FROM nothing n, orders o WHERE o.customer_id = n.k
SELECT COUNT(*) FROM orders o, orders q WHERE o.id = q.total AND o.status = 2
SELECT COUNT(*) FROM customer c, tag t WHERE c.id = t.customer_id AND t.tag = 7
SELECT COUNT(*) FROM region r, customer c WHERE c.region_id = r.id AND r.name = 'region5'
SELECT COUNT(*) FROM product p, item i WHERE p.id = i.product_id AND p.price BETWEEN 100 AND 104
SELECT c.id, o.id FROM customer c, orders o WHERE o.customer_id = c.id AND c.region_id = 4 ORDER BY c.id LIMIT 5
SELECT o.id, c.city FROM orders o, customer c WHERE o.customer_id = c.id ORDER BY o.placed LIMIT 10
SELECT COUNT(*) FROM orders o, customer c WHERE o.placed < c.id AND c.id < 3 AND o.id < 40
SELECT COUNT(*) FROM product p, product q WHERE p.price < q.id AND q.category = 15
# Three tables and more
SELECT COUNT(*) FROM customer a, event b, flat c WHERE b.kind = 4 AND c.b = b.kind AND c.a <= a.id AND a.region_id = 9
SELECT COUNT(*) FROM pair a, pair b, pair c WHERE b.x = a.id AND c.z = b.z AND c.id <= a.id AND a.y = 40
SELECT COUNT(*) FROM orders o, item i, product p WHERE i.order_id = o.id AND p.id = i.product_id AND o.placed = 500
SELECT COUNT(*) FROM orders o, item i, product p WHERE i.order_id = o.id AND p.id = i.product_id AND p.name = 'product490'
SELECT COUNT(*) FROM customer c, orders o, item i WHERE o.customer_id = c.id AND i.order_id = o.id AND c.code = 30
SELECT COUNT(*) FROM customer c, orders o, item i WHERE o.customer_id = c.id AND i.order_id = o.id AND i.product_id = 499
SELECT COUNT(*) FROM region r, customer c, orders o WHERE c.region_id = r.id AND o.customer_id = c.id AND r.name = 'region7'
SELECT COUNT(*) FROM region r, customer c, orders o WHERE c.region_id = r.id AND o.customer_id = c.id AND r.zone = 2 AND o.status = 2
SELECT COUNT(*) FROM customer c, tag t, event e WHERE t.customer_id = c.id AND e.customer_id = c.id AND t.tag = 3 AND e.kind = 7
SELECT COUNT(*) FROM flat f, flat g, single s WHERE f.a = g.a AND g.b = s.k AND s.id = 77
SELECT r.name, COUNT(*) FROM region r, customer c, orders o WHERE c.region_id = r.id AND o.customer_id = c.id AND o.placed < 10 GROUP BY r.name
SELECT COUNT(*) FROM region r, customer c, orders o, item i WHERE c.region_id = r.id AND o.customer_id = c.id AND i.order_id = o.id AND r.id = 8 AND o.status = 1
SELECT COUNT(*) FROM customer c, orders o, item i, product p WHERE o.customer_id = c.id AND i.order_id = o.id AND p.id = i.product_id AND p.category = 18 AND c.city = 'c9'
SELECT COUNT(*) FROM region r, customer c, orders o, item i, product p WHERE c.region_id = r.id AND o.customer_id = c.id AND i.order_id = o.id AND p.id = i.product_id AND p.price = 6 AND r.zone = 1
# Outer joins
SELECT COUNT(o.note) FROM customer c LEFT JOIN orders o ON o.customer_id = c.id WHERE c.city = 'c8'
SELECT COUNT(*) FROM customer c LEFT JOIN orders o ON o.customer_id = c.id AND o.status = 2
SELECT COUNT(*) FROM customer c LEFT JOIN orders o ON o.customer_id = c.id WHERE o.status = 2
SELECT COUNT(*) FROM flat f LEFT JOIN event e ON e.amount = f.a WHERE f.b = 50
SELECT COUNT(*) FROM product p LEFT JOIN item i ON i.product_id = p.id WHERE p.category = 19 AND i.order_id IS NULL
# Subqueries
SELECT COUNT(*) FROM customer c WHERE c.id IN (SELECT customer_id FROM orders WHERE status = 2)
or SELECT COUNT(DISTINCT c.id) FROM orders o, customer c WHERE c.id = o.customer_id AND o.status = 2
SELECT COUNT(*) FROM customer c WHERE c.city = 'c3' AND c.id IN (SELECT customer_id FROM event)
or SELECT COUNT(DISTINCT c.id) FROM customer c, event e WHERE c.id = e.customer_id AND c.city = 'c3'
SELECT COUNT(*) FROM customer c WHERE c.id = 5 AND c.id IN (SELECT customer_id FROM orders)
or SELECT COUNT(DISTINCT c.id) FROM customer c, orders o WHERE c.id = o.customer_id AND c.id = 5
SELECT COUNT(*) FROM customer c WHERE EXISTS (SELECT 1 FROM event e WHERE e.customer_id = c.id AND e.kind = 6)
or SELECT COUNT(DISTINCT c.id) FROM customer c, event e WHERE c.id = e.customer_id AND e.kind = 6
SELECT COUNT(*) FROM customer c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id AND o.status = 2)
or SELECT COUNT(DISTINCT c.id) FROM customer c, orders o WHERE c.id = o.customer_id AND o.status = 2
SELECT COUNT(*) FROM customer c WHERE c.id < 5 AND EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id)
or SELECT COUNT(DISTINCT c.id) FROM customer c, orders o WHERE c.id = o.customer_id AND c.id < 5
SELECT COUNT(*) FROM customer c WHERE NOT EXISTS (SELECT 1 FROM event e WHERE e.customer_id = c.id AND e.amount < 5000)
or SELECT COUNT(*) FROM customer c LEFT JOIN (SELECT DISTINCT customer_id FROM event WHERE amount < 5000) e ON e.customer_id = c.id WHERE e.customer_id IS NULL
SELECT COUNT(*) FROM customer c WHERE c.id NOT IN (SELECT customer_id FROM event WHERE amount < 5000)
or SELECT COUNT(*) FROM customer c LEFT JOIN (SELECT DISTINCT customer_id FROM event WHERE amount < 5000) e ON e.customer_id = c.id WHERE e.customer_id IS NULL
# Derived tables
SELECT COUNT(*) FROM (SELECT id, customer_id, status FROM orders) o WHERE o.status = 2
or SELECT COUNT(*) FROM orders o WHERE o.status = 2
SELECT COUNT(*) FROM (SELECT o.id, c.city FROM orders o JOIN customer c ON c.id = o.customer_id) x WHERE x.city = 'c5'
or SELECT COUNT(*) FROM orders o JOIN customer c ON c.id = o.customer_id WHERE c.city = 'c5'
SELECT * FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id) x WHERE x.customer_id = 40
or SELECT customer_id, COUNT(*) AS n FROM orders WHERE customer_id = 40 GROUP BY customer_id
SELECT COUNT(*) FROM customer c, (SELECT customer_id, SUM(total) AS t FROM orders GROUP BY customer_id) x WHERE x.customer_id = c.id AND c.city = 'c3'
SELECT COUNT(*) FROM (SELECT kind AS k, amount FROM event UNION ALL SELECT b, a FROM flat) x WHERE x.k = 7
# A range of which the sample has met nothing
SELECT COUNT(*), SUM(f.c) FROM flat f JOIN orders o ON o.total = f.a WHERE o.id < 30
# Conditions on set operations
SELECT COUNT(*) FROM (SELECT id, total AS v FROM orders UNION ALL SELECT id, price FROM product) x WHERE x.id = 5
or SELECT COUNT(*) FROM (SELECT id, total AS v FROM orders WHERE id = 5 UNION ALL SELECT id, price FROM product WHERE id = 5) x
SELECT COUNT(*) FROM (SELECT customer_id, COUNT(*) AS n FROM orders GROUP BY customer_id UNION SELECT id, 0 FROM customer) x WHERE x.customer_id BETWEEN 3 AND 6
or SELECT COUNT(*) FROM (SELECT customer_id, COUNT(*) AS n FROM orders WHERE customer_id BETWEEN 3 AND 6 GROUP BY customer_id UNION SELECT id, 0 FROM customer WHERE id BETWEEN 3 AND 6) x
SELECT x.what, COUNT(*) FROM (SELECT 'order' AS what, id FROM orders UNION ALL SELECT 'product', id FROM product) x WHERE x.what = 'product' GROUP BY x.what
or SELECT 'product', COUNT(*) FROM product
SELECT COUNT(*) FROM (SELECT id + 1 AS n FROM customer EXCEPT SELECT code FROM customer WHERE id < 300) x WHERE x.n < 10
SELECT COUNT(*) FROM (SELECT o.customer_id AS c, o.total AS v FROM orders o JOIN customer k ON k.id = o.customer_id UNION SELECT customer_id, amount FROM event) x, region r WHERE x.c = 7 AND r.id = 1
or SELECT COUNT(*) FROM (SELECT o.customer_id AS c, o.total AS v FROM orders o JOIN customer k ON k.id = o.customer_id WHERE o.customer_id = 7 UNION SELECT customer_id, amount FROM event WHERE customer_id = 7) x, region r WHERE r.id = 1
