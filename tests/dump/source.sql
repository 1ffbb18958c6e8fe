-- What a dump goes through: every type, kinds of keys, foreign keys, views, 100,000 rows.
SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION';
CREATE TABLE numbers (id INT NOT NULL AUTO_INCREMENT, t TINYINT, tu TINYINT UNSIGNED, s SMALLINT, m MEDIUMINT, i INT(5) UNSIGNED ZEROFILL, b BIGINT, bu BIGINT UNSIGNED, d DECIMAL(20,6) NOT NULL DEFAULT 1.5, f FLOAT, g DOUBLE, y YEAR, bo BOOLEAN DEFAULT TRUE, PRIMARY KEY (id)) AUTO_INCREMENT=1000;
INSERT INTO numbers VALUES (1,-128,255,-32768,8388607,42,-9223372036854775808,18446744073709551615,-12345678901234.123456,1.5,-1.25e-10,1999,0),(2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL),(3,127,0,32767,-8388608,99999,9223372036854775807,0,99999999999999.999999,0.1,3.141592653589793,2155,1);
CREATE TABLE texts (id INT PRIMARY KEY, c CHAR(10), v VARCHAR(200) NOT NULL DEFAULT 'it''s', tt TINYTEXT, t TEXT, mt MEDIUMTEXT, lt LONGTEXT, bi BINARY(4), vb VARBINARY(50), tb TINYBLOB, bl BLOB, lb LONGBLOB, l1 VARCHAR(20) CHARACTER SET latin1, bn VARCHAR(20) COLLATE utf8mb4_bin, e ENUM('small','medium','l''arge') DEFAULT 'medium', s SET('a','b','c'), bt BIT(10), KEY v (v(20)), KEY e (e)) DEFAULT CHARSET=utf8mb4 COMMENT='it''s text';
INSERT INTO texts VALUES (1,'a','x','tt','text with \'quotes\' and \\ and \n newline','m','l',x'00010203',x'00ff10',x'27',x'000a0d1a225c27','blob','größe','Bin','small','a,c',b'1010101010'),(2,NULL,'',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL),(3,'ünïcödé','snowman ☃ and 😀','','','','','','','','','','','','l''arge','',b'0');
CREATE TABLE times (id INT PRIMARY KEY, d DATE, t TIME, t3 TIME(3), dt DATETIME, dt6 DATETIME(6), ts TIMESTAMP NULL DEFAULT NULL, ts2 TIMESTAMP(2) NOT NULL DEFAULT CURRENT_TIMESTAMP(2) ON UPDATE CURRENT_TIMESTAMP(2));
INSERT INTO times VALUES (1,'2020-02-29','-838:59:59','12:34:56.789','1000-01-01 00:00:00','9999-12-31 23:59:59.999999','1970-01-01 00:00:01','2038-01-19 03:14:07.99'),(2,NULL,NULL,NULL,NULL,NULL,NULL,'2001-01-01 00:00:00');
CREATE TABLE keyed (a INT NOT NULL, b VARCHAR(10) NOT NULL, c INT, d INT NOT NULL DEFAULT 0 COMMENT 'counts; ''quoted''', PRIMARY KEY (a, b), UNIQUE KEY c (c), KEY d_desc (d, c), KEY with_comment (c, d) COMMENT 'two');
INSERT INTO keyed VALUES (1,'x',1,5),(1,'y',NULL,6),(2,'x',3,7),(2,'z',NULL,8);
CREATE TABLE keyless (a INT, b VARCHAR(10));
INSERT INTO keyless VALUES (1,'a'),(1,'a'),(NULL,NULL),(2,'b');
CREATE TABLE `odd ``name` (`select` INT PRIMARY KEY, `a b` VARCHAR(10), KEY `k-1` (`a b`));
INSERT INTO `odd ``name` VALUES (1,'x'),(2,NULL);
CREATE TABLE customer (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50) NOT NULL, parent INT, KEY (parent), CONSTRAINT customer_parent FOREIGN KEY (parent) REFERENCES customer (id) ON DELETE SET NULL);
INSERT INTO customer VALUES (1,'one',NULL),(2,'two',1),(3,'three',3);
CREATE TABLE a_child_comes_first (id INT PRIMARY KEY, customer INT NOT NULL, code INT, CONSTRAINT to_customer FOREIGN KEY (customer) REFERENCES customer (id) ON DELETE CASCADE ON UPDATE CASCADE, FOREIGN KEY (code) REFERENCES keyed (c) ON UPDATE NO ACTION);
INSERT INTO a_child_comes_first VALUES (1,1,1),(2,2,NULL),(3,1,3);
CREATE TABLE big (id INT NOT NULL AUTO_INCREMENT, k INT NOT NULL DEFAULT 0, c CHAR(60) NOT NULL DEFAULT '', amount DECIMAL(12,2), at DATETIME, PRIMARY KEY (id), KEY k_1 (k), KEY at (at, amount));
INSERT INTO big (k, c, amount, at) SELECT seq * 7919 % 100003, CONCAT('row ', seq, ' ', MD5(seq)), IF(seq % 10 = 0, NULL, seq / 7), '2020-01-01' + INTERVAL seq MINUTE FROM seq_1_to_100000;
CREATE DEFINER=root@localhost VIEW a_view AS SELECT id, k, c FROM big WHERE k < 1000;
CREATE DEFINER=root@localhost VIEW z_view AS SELECT customer.name AS who, COUNT(*) AS children FROM customer JOIN a_child_comes_first ON a_child_comes_first.customer = customer.id GROUP BY customer.name;
CREATE DEFINER=root@localhost SQL SECURITY INVOKER VIEW checked AS SELECT * FROM a_view WHERE id > 5 WITH LOCAL CHECK OPTION;
CREATE DEFINER=root@localhost VIEW `odd view` (`a b`, y) AS SELECT `select`, UPPER(`a b`) FROM `odd ``name`;
CREATE TABLE empty_one (id INT PRIMARY KEY);

CREATE TABLE computed (id INT PRIMARY KEY, a INT, b VARCHAR(20) DEFAULT (CONCAT('it''s ', a)), v INT AS (a * 2) VIRTUAL COMMENT 'twice', s VARCHAR(30) AS (CONCAT(b, '/', v)) STORED, at DATETIME DEFAULT (NOW() + INTERVAL 1 DAY), KEY v (v), UNIQUE KEY s (s), CHECK (v < 1000 OR s NOT LIKE 'x\_%'));

INSERT INTO computed (id, a) VALUES (1, 10), (2, 20), (3, NULL);

INSERT INTO computed (id, a, b) VALUES (4, 5, 'back\\slash');
