CREATE TABLE t1 (
  id INT NOT NULL PRIMARY KEY,
  tiny TINYINT, tinyu TINYINT UNSIGNED NOT NULL DEFAULT 7, small SMALLINT, smallu SMALLINT UNSIGNED,
  medium MEDIUMINT, mediumu MEDIUMINT UNSIGNED ZEROFILL, plain INT, plainu INT(6) UNSIGNED ZEROFILL,
  big BIGINT NOT NULL DEFAULT -1, bigu BIGINT UNSIGNED,
  dec0 DECIMAL(10,0), dec2 DECIMAL(8,2), dec2n DECIMAL(6,2) UNSIGNED NOT NULL DEFAULT 1.5,
  dec10 DECIMAL(30,10), wide DECIMAL(65,30), decz DECIMAL(7,3) ZEROFILL,
  f FLOAT, f2 FLOAT(7,2), d DOUBLE, d3 DOUBLE(12,3), dn DOUBLE NOT NULL DEFAULT 0.5,
  name VARCHAR(20) COLLATE utf8mb4_general_ci, day DATE, word CHAR(5) NOT NULL DEFAULT 'word',
  KEY (tiny), KEY (plainu), KEY (big, tiny), UNIQUE KEY (dec10), KEY (dec2), KEY (d), KEY (name), KEY (day)
);
CREATE TABLE t2 (
  id INT NOT NULL PRIMARY KEY,
  name VARCHAR(20) COLLATE utf8mb4_general_ci, uni VARCHAR(30) COLLATE utf8mb4_unicode_ci,
  bin VARCHAR(10) COLLATE utf8mb4_bin NOT NULL DEFAULT '', lat VARCHAR(12) CHARACTER SET latin1,
  word CHAR(5), latc CHAR(4) CHARACTER SET latin1 COLLATE latin1_bin, body TEXT, tt TINYTEXT COLLATE utf8mb4_unicode_ci,
  vb VARBINARY(8), b4 BINARY(4), bl BLOB, tb TINYBLOB NOT NULL,
  small SMALLINT, dec2 DECIMAL(8,2), d DOUBLE, day DATE,
  KEY (name), KEY (uni), KEY (lat), UNIQUE KEY (bin, id), KEY (vb), KEY (body(4)), KEY (word, small)
);
CREATE TABLE t3 (
  id INT NOT NULL PRIMARY KEY,
  day DATE, moment DATETIME, moment3 DATETIME(3), moment6 DATETIME(6) NOT NULL DEFAULT '2000-01-01 00:00:00',
  stamp TIMESTAMP NULL, stamp6 TIMESTAMP(6) NULL, clock TIME, clock2 TIME(2), clock6 TIME(6), y YEAR,
  e ENUM('x','small','medium','LARGE') , s SET('a','b','c','d') NOT NULL DEFAULT '', bits BIT(12), bit1 BIT(1), js JSON,
  plain INT, name VARCHAR(20) COLLATE utf8mb4_general_ci,
  KEY (day), KEY (moment), KEY (moment3), UNIQUE KEY (stamp6, id), KEY (clock), KEY (y), KEY (e), KEY (s), KEY (plain)
);
CREATE TABLE t4 (
  id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  tiny TINYINT, bigu BIGINT UNSIGNED, dec2 DECIMAL(8,2), d DOUBLE, f FLOAT, name VARCHAR(6), lat VARCHAR(4) CHARACTER SET latin1,
  vb VARBINARY(4), day DATE, moment DATETIME(1), stamp TIMESTAMP NULL, clock TIME, y YEAR, e ENUM('x','small'), s SET('a','b'),
  bits BIT(4), plain INT NOT NULL DEFAULT 3, word CHAR(3) NOT NULL DEFAULT 'w'
);
INSERT INTO t1 VALUES
(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', '2024-02-29', ''),
(2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 'a', '2000-01-01', 'a'),
(3, -1, 2, -1, 2, -1, 2, -1, 2, -1, 2, -1, -1.5, 2.25, -1.0000000001, -0.5, 2.5, -1.5, -1.25, -1.5, -1.5, -1.5, 'A', '1970-01-01', 'A'),
(4, NULL, 3, NULL, NULL, NULL, NULL, NULL, NULL, 7, NULL, NULL, NULL, 3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 3, NULL, NULL, 'abc'),
(5, 127, 255, 32767, 65535, 8388607, 16777215, 2147483647, 4294967295, 9223372036854775807, 18446744073709551615, 9999999999, 999999.99, 9999.99, 99999999999999999999.9999999999, 99999999999999999999999999999999999.999999999999999999999999999999, 9999.999, 3.4e38, 99999.99, 1.7e308, 999999999.999, 1e100, 'Zebra', '9999-12-31', 'zzzzz'),
(6, -128, 128, -32768, 32768, -8388608, 8388608, -2147483648, 2147483648, -9223372036854775808, 9223372036854775808, -9999999999, -999999.99, 0.01, -99999999999999999999.9999999999, -99999999999999999999999999999999999.999999999999999999999999999999, 0.001, -3.4e38, -99999.99, -1.7e308, -999999999.999, -1e100, '12abc', '1000-01-01', '1'),
(7, 10, 10, 100, 100, 1000, 1000, 10000, 10000, 100000, 100000, 10, 10.50, 10.05, 10.1234567891, 3.141592653589793238462643383279, 10.125, 0.1, 10.05, 0.1, 10.125, 1e-10, '10', '2023-12-31', '10'),
(8, 45, 200, 12345, 54321, 123456, 654321, 123456789, 987654321, 1234567890123, 9876543210987, 1234567890, 12345.67, 45.5, 1234.5678901234, 0.000000000000000000000000000001, 45.678, 123.456, 123.45, 1e15, 0.001, 123456.789, 'äöü', '2024-06-15', 'äß'),
(9, 45, 200, 5, 5, 24, 24, 60, 60, 20240229, 20240229123456, 5, 5.00, 5, 5.5, 5, 5.5, 5.5, 5.5, 5.5, 5.5, 5.5, ' a ', '2024-01-31', 'x y');
INSERT INTO t2 VALUES
(1, '', '', '', '', '', '', '', '', '', '', '', '', 0, 0, 0, '2024-02-29'),
(2, 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 1, 1, 1, '2000-01-01'),
(3, 'A', 'Ä', 'A', 'Ä', 'A', 'A', 'A b c', 'Ä', 'A', 'A', 'A', 'A', -1, -1.5, -1.5, '1970-01-01'),
(4, NULL, NULL, 'null', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'null', NULL, NULL, NULL, NULL),
(5, 'Zebra', 'straße', 'ß', 'straße', 'zebra', 'zz', 'Straße, Strasse und so weiter', 'ss', x'00FF7F80', x'FF', x'FFFEFD00', x'00', 32767, 999999.99, 1e10, '9999-12-31'),
(6, '12abc', '日本語', '日本', 'café', '12', '1', '2024-02-29 12:34:56', '-12.5e1', '12', '12', '12.5', '1e3', -32768, -999999.99, -1e10, '1000-01-01'),
(7, '10', '10', '10', '10', '10', '10', '10:11:12.5', '10', '10', '10', '10', '10', 10, 10.5, 10, '2023-12-31'),
(8, 'äöü', 'ÄÖÜ', 'äöü', 'äöü', 'ÄÖ', 'äö', 'one,two,,three', '{"a": [1, 2.5, "x"]}', 'äö', 'é', '😀', '日', 100, 0.01, 0.1, '2024-06-15'),
(9, ' a ', ' a', ' a ', 'a ', ' a', ' a', '%a_b\\c', '😀', 'a ', ' a', ' a ', 'A ', 5, 5, 5.5, '2024-01-31');
INSERT INTO t3 VALUES
(1, '2024-02-29', '2024-02-29 00:00:00', '2024-02-29 00:00:00', '2024-02-29 00:00:00', '2024-02-29 00:00:00', '2024-02-29 00:00:00', '00:00:00', '00:00:00', '00:00:00', 2024, 'x', '', 0, 0, '{}', 0, ''),
(2, '2000-01-01', '2000-01-01 12:34:56', '2000-01-01 12:34:56.789', '2000-01-01 12:34:56.789012', '2000-01-01 12:34:56', '2000-01-01 12:34:56.789012', '12:34:56', '12:34:56.78', '12:34:56.789012', 2000, 'small', 'a', 1, 1, '{"a": 1, "b": [1, 2, {"c": null}]}', 1, 'a'),
(3, '1970-01-01', '1970-01-02 00:00:00', '1970-01-01 00:00:00.001', '1970-01-01 00:00:00.000001', '1970-01-02 00:00:01', '1970-01-02 00:00:01.5', '-00:00:01', '-00:00:00.01', '-00:00:00.000001', 1970, 'LARGE', 'a,b', 4095, 1, '[1, "two", 3.5, true, null]', -1, 'A'),
(4, NULL, NULL, NULL, '2001-02-03 04:05:06.07', NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'c', NULL, NULL, NULL, NULL, NULL),
(5, '9999-12-31', '9999-12-31 23:59:59', '9999-12-31 23:59:59.999', '9999-12-31 23:59:59.999999', '2038-01-19 03:14:07', '2038-01-19 03:14:07.999999', '838:59:59', '838:59:59.99', '838:59:59.999999', 2155, 'medium', 'a,b,c,d', 2048, 0, '"text"', 2147483647, 'Zebra'),
(6, '1000-01-01', '1000-01-01 00:00:00', '1000-01-01 00:00:00', '1000-01-01 00:00:00', '1999-12-31 23:59:59', '1999-12-31 23:59:59.999999', '-838:59:59', '-838:59:59', '-838:59:59', 1901, 'small', 'd', 65, 0, '-12.5', -2147483648, '12abc'),
(7, '2023-12-31', '2023-12-31 23:59:59', '2023-12-31 23:59:59.9', '2023-12-31 23:59:59.5', '2023-12-31 23:59:59', '2023-12-31 23:59:59.25', '23:59:59', '23:59:59.99', '23:59:59.5', 2023, 'x', 'b', 10, 1, '{"k": {"k": "v"}, "10": "x"}', 10, '10'),
(8, '2024-06-15', '2024-06-15 10:11:12', '2024-06-15 10:11:12.125', '2024-06-15 10:11:12.131415', '2024-06-15 10:11:12', '2024-06-15 10:11:12.131415', '-12:30:00', '100:00:00.5', '25:00:00.25', 2024, 'medium', 'a,d', 300, 1, 'true', 100, 'äöü'),
(9, '2024-01-31', '2024-01-31 01:00:00', '2024-01-31 01:00:00.5', '2024-01-31 01:00:00.5', '2024-01-31 01:00:00', '2024-01-31 01:00:00.5', '01:00:00', '01:00:00.5', '01:00:00.5', 2024, 'x', 'c,d', 5, 0, '[]', 5, ' a ');
INSERT INTO t4 (tiny, bigu, dec2, d, f, name, lat, vb, day, moment, stamp, clock, y, e, s, bits) VALUES
(1, 1, 1, 1, 1, 'a', 'a', 'a', '2024-02-29', '2024-02-29 01:02:03.4', '2024-02-29 01:02:03', '01:02:03', 2024, 'x', 'a', 1),
(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
(-1, 2, -1.5, -1.5, -1.5, 'Zebra', 'äö', 'ab', '2000-01-01', '2000-01-01 00:00:00', '2000-01-01 00:00:00', '-01:00:00', 2000, 'small', 'a,b', 15);
