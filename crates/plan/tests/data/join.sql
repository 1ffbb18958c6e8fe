SELECT t.c FROM t, u WHERE t.id = u.a
SELECT * FROM u JOIN t ON t.id = u.a WHERE u.b = 'x'
SELECT * FROM t JOIN u ON u.b = t.c WHERE t.id = 5
SELECT * FROM t a JOIN t b ON a.k = b.k WHERE a.id = 1
SELECT * FROM small s JOIN nokey n ON s.x = n.a
SELECT * FROM nokey a JOIN nokey b ON a.a = b.a AND a.b > b.b
SELECT * FROM small s CROSS JOIN nokey n
SELECT * FROM small LEFT JOIN t ON t.id = small.x
SELECT * FROM small LEFT JOIN t ON t.id = small.x WHERE t.k = 5
SELECT * FROM small LEFT JOIN t ON t.id = small.x WHERE t.k IS NULL
SELECT * FROM small LEFT JOIN nokey ON nokey.a = small.x AND nokey.b = 1
SELECT * FROM small RIGHT JOIN t ON t.id = small.x
SELECT * FROM small LEFT JOIN (t JOIN u ON t.k = u.a) ON t.id = small.x
SELECT * FROM small s LEFT JOIN t ON t.id = s.x LEFT JOIN u ON u.a = t.k
SELECT * FROM (small s, nokey n) LEFT JOIN t ON t.id = s.x WHERE n.a = s.x
SELECT * FROM small STRAIGHT_JOIN t ON t.k = small.x
SELECT STRAIGHT_JOIN * FROM t, small WHERE t.k = small.x
SELECT * FROM t a JOIN u USING (a)
SELECT * FROM nokey a JOIN u USING (a)
SELECT a FROM nokey NATURAL JOIN u
SELECT a FROM nokey n LEFT JOIN u USING (a) ORDER BY a LIMIT 3
SELECT * FROM small s, t WHERE t.id = s.x ORDER BY s.x LIMIT 10
SELECT * FROM t a, t b, t c, u WHERE a.id = b.k AND b.id = c.k AND c.id = u.a AND u.a = 5 AND u.d = 6
SELECT * FROM u, t WHERE t.id = u.a AND u.a = 7
SELECT d.n FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) d JOIN small ON small.x = d.k
WITH v AS (SELECT id FROM t WHERE k = 1) SELECT * FROM v JOIN u ON u.a = v.id
SELECT 1 UNION SELECT 'a' UNION ALL SELECT NULL ORDER BY 1 LIMIT 2
SELECT id FROM t WHERE id = 1 UNION SELECT a FROM u WHERE a = 2 ORDER BY id DESC
(SELECT id FROM t ORDER BY k LIMIT 1) UNION ALL (SELECT a FROM u LIMIT 2)
VALUES (1, 'a'), (2, 'b')
SELECT * FROM t JOIN u ON u.a = t.k WHERE t.id = 5 ORDER BY u.d DESC, u.b
SELECT * FROM t JOIN u ON u.a = t.k WHERE t.id = 5 ORDER BY t.c
