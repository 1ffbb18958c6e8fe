# Statements, each with the values of some executions: see crates/xtask/src/plans/prepared.rs.
SELECT COUNT(*), SUM(total) FROM orders WHERE placed < ? AND status = ?
with 10, 0
with 990, 2
with 10, 0
with 990, 2
SELECT COUNT(*), SUM(total) FROM orders WHERE status = ? AND placed BETWEEN ? AND ?
with 2, 0, 990
with 0, 5, 9
with 1, 0, 20
SELECT COUNT(*), SUM(e.amount) FROM event e, flat f WHERE e.amount = f.a AND e.at < ? AND f.b = ?
with 20, 3
with 9000, 50
with 20, 3
SELECT MAX(price) FROM product WHERE category = ? AND price > ?
with 0, 995
with 19, 1
UPDATE orders SET note = note WHERE placed < ? AND status = ?
with 10, 0
with 990, 2
