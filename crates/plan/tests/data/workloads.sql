CREATE TABLE sbtest1 (id INT NOT NULL AUTO_INCREMENT, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id), KEY k_1 (k)) COMMENT 'rows 100000; k_1 40000'
CREATE TABLE warehouse (w_id SMALLINT NOT NULL, w_name VARCHAR(10), w_tax DECIMAL(4,2), w_ytd DECIMAL(12,2), PRIMARY KEY (w_id)) COMMENT 'rows 10'
CREATE TABLE district (d_id TINYINT NOT NULL, d_w_id SMALLINT NOT NULL, d_tax DECIMAL(4,2), d_ytd DECIMAL(12,2), d_next_o_id INT, PRIMARY KEY (d_w_id, d_id)) COMMENT 'rows 100; PRIMARY 10,100'
CREATE TABLE customer (c_id INT NOT NULL, c_d_id TINYINT NOT NULL, c_w_id SMALLINT NOT NULL, c_first VARCHAR(16), c_last VARCHAR(16), c_balance DECIMAL(12,2), c_discount DECIMAL(4,2), c_data TEXT, PRIMARY KEY (c_w_id, c_d_id, c_id), KEY idx_customer (c_w_id, c_d_id, c_last, c_first)) COMMENT 'rows 300000; PRIMARY 10,100,300000; idx_customer 10,100,100000,290000'
CREATE TABLE new_orders (no_o_id INT NOT NULL, no_d_id TINYINT NOT NULL, no_w_id SMALLINT NOT NULL, PRIMARY KEY (no_w_id, no_d_id, no_o_id)) COMMENT 'rows 90000; PRIMARY 10,100,90000'
CREATE TABLE orders (o_id INT NOT NULL, o_d_id TINYINT NOT NULL, o_w_id SMALLINT NOT NULL, o_c_id INT, o_entry_d DATETIME, o_carrier_id TINYINT, PRIMARY KEY (o_w_id, o_d_id, o_id), KEY idx_orders (o_w_id, o_d_id, o_c_id, o_id)) COMMENT 'rows 300000; PRIMARY 10,100,300000; idx_orders 10,100,300000,300000'
CREATE TABLE order_line (ol_o_id INT NOT NULL, ol_d_id TINYINT NOT NULL, ol_w_id SMALLINT NOT NULL, ol_number TINYINT NOT NULL, ol_i_id INT, ol_supply_w_id SMALLINT, ol_delivery_d DATETIME, ol_quantity TINYINT, ol_amount DECIMAL(6,2), PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number), KEY fkey_order_line_2 (ol_supply_w_id, ol_i_id)) COMMENT 'rows 3000000; PRIMARY 10,100,300000,3000000; fkey_order_line_2 10,1000000'
CREATE TABLE stock (s_i_id INT NOT NULL, s_w_id SMALLINT NOT NULL, s_quantity SMALLINT, s_ytd DECIMAL(8,0), s_data VARCHAR(50), PRIMARY KEY (s_w_id, s_i_id), KEY fkey_stock_2 (s_i_id)) COMMENT 'rows 1000000; PRIMARY 10,1000000; fkey_stock_2 100000'
CREATE TABLE linktable (id1 BIGINT UNSIGNED NOT NULL, id2 BIGINT UNSIGNED NOT NULL, link_type BIGINT UNSIGNED NOT NULL, visibility TINYINT NOT NULL, data VARCHAR(255) NOT NULL, time BIGINT UNSIGNED NOT NULL, version INT UNSIGNED NOT NULL, PRIMARY KEY (link_type, id1, id2), KEY id1_type (id1, link_type, visibility, time, id2, version, data)) CHARSET=latin1 COMMENT 'rows 1000000; PRIMARY 2,500000,1000000; id1_type 400000,500000,500000,900000,1000000,1000000,1000000'
CREATE TABLE counttable (id BIGINT UNSIGNED NOT NULL, link_type BIGINT UNSIGNED NOT NULL, count INT UNSIGNED NOT NULL, time BIGINT UNSIGNED NOT NULL, version BIGINT UNSIGNED NOT NULL, PRIMARY KEY (id, link_type)) COMMENT 'rows 500000; PRIMARY 400000,500000'
SELECT c FROM sbtest1 WHERE id=?
SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN ? AND ?
SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c
UPDATE sbtest1 SET c=? WHERE id=?
DELETE FROM sbtest1 WHERE id=?
INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)
SELECT id, k, c, pad FROM sbtest1 WHERE k IN (?, ?, ?, ?, ?)
SELECT count(k) FROM sbtest1 WHERE k BETWEEN ? AND ? OR k BETWEEN ? AND ? OR k BETWEEN ? AND ?
SELECT c_discount, c_last, w_tax FROM customer, warehouse WHERE w_id = 1 AND c_w_id = w_id AND c_d_id = 2 AND c_id = 3
SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = 1 AND d_id = 2 FOR UPDATE
UPDATE district SET d_next_o_id = 3002 WHERE d_id = 1 AND d_w_id = 2
SELECT s_quantity, s_data FROM stock WHERE s_i_id = 5 AND s_w_id = 1 FOR UPDATE
SELECT count(c_id) namecnt FROM customer WHERE c_w_id = 1 AND c_d_id = 2 AND c_last = 'BARBAR'
SELECT c_balance, c_first, c_id FROM customer WHERE c_w_id = 1 AND c_d_id = 2 AND c_last = 'BARBAR' ORDER BY c_first
SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = 1 AND o_d_id = 2 AND o_c_id = 3 ORDER BY o_id DESC
SELECT o_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? AND o_id = (SELECT MAX(o_id) FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ?)
SELECT ol_i_id, ol_quantity FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 2 AND ol_o_id = 3
SELECT no_o_id FROM new_orders WHERE no_d_id = 1 AND no_w_id = 2 ORDER BY no_o_id ASC LIMIT 1 FOR UPDATE
SELECT COALESCE(MIN(no_o_id), 0) FROM new_orders WHERE no_d_id = ? AND no_w_id = ?
DELETE FROM new_orders WHERE no_o_id = 1 AND no_d_id = 2 AND no_w_id = 3
UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_o_id = 1 AND ol_d_id = 2 AND ol_w_id = 3
SELECT SUM(ol_amount) sm FROM order_line WHERE ol_o_id = 1 AND ol_d_id = 2 AND ol_w_id = 3
SELECT COUNT(DISTINCT (s_i_id)) FROM order_line, stock WHERE ol_w_id = 1 AND ol_d_id = 2 AND ol_o_id < 3001 AND ol_o_id >= 2981 AND s_w_id = 1 AND s_i_id = ol_i_id AND s_quantity < 15
SELECT DISTINCT ol_i_id FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 2 AND ol_o_id < 3001 AND ol_o_id >= 2981
SELECT d_w_id, SUM(d_ytd) FROM district GROUP BY d_w_id HAVING SUM(d_ytd) <> (SELECT w_ytd FROM warehouse WHERE w_id = d_w_id)
SELECT id1, id2, link_type, visibility, data, time, version FROM linktable FORCE INDEX(`id1_type`) WHERE id1 = 5 AND link_type = 6 AND time >= 0 AND time <= 9223372036854775807 AND visibility = 1 ORDER BY time DESC LIMIT 0, 10000
SELECT visibility FROM linktable WHERE id1 = 1 AND id2 = 2 AND link_type = 3 FOR UPDATE
INSERT INTO linktable (id1, id2, link_type, visibility, data, time, version) VALUES (1, 2, 3, 1, '', 5, 6) ON DUPLICATE KEY UPDATE visibility = VALUES(visibility)
INSERT INTO counttable (id, link_type, count, time, version) VALUES (1, 2, 1, 3, 0) ON DUPLICATE KEY UPDATE count = IF (count = 0, 0, count - 1), version = version + 1, time = 5
SELECT id1, id2 FROM linktable WHERE id1 = 1 AND link_type = 2 AND id2 IN (3, 4, 5)
