drop table if exists t;
create table t (
  ti tinyint, tu tinyint unsigned not null, si smallint, mi mediumint, i int not null, iu int unsigned,
  b bigint, bu bigint unsigned, d decimal(10,2), du decimal(5,0) unsigned, dd decimal(30,10) not null,
  f float, g double, gf double(10,3), c char(10), v varchar(20) not null, vb varchar(20) collate utf8mb4_bin,
  bi binary(4), bv varbinary(10), x text, bl blob, l1 varchar(10) character set latin1,
  da date, ti0 time, ti3 time(3), dt datetime, dt6 datetime(6) not null, ts timestamp null, y year, n int
) default charset utf8mb4;
insert into t values (-5, 200, -300, 70000, 7, 4000000000,
  -9223372036854775808, 18446744073709551615, 123.45, 99999, 1.0000000001,
  1.5, 2.25, 3.125, 'Abc', 'Hello', 'World',
  'bin', 'x\0y', 'some text', 'blob', 'café',
  '2020-02-29', '-12:34:56', '01:02:03.456', '2021-03-04 05:06:07', '1999-12-31 23:59:59.999999',
  '2020-09-13 12:26:40', 2024, null);
drop table if exists a;
create table a (i int, d decimal(10,2), f double, s varchar(10), dt datetime, b bigint not null, n int)
  default charset utf8mb4;
insert into a values (3, 1.50, 0.5, 'b', '2020-01-01 00:00:00', 9223372036854775807, null),
  (1, -2.25, 1.25, 'A', '2021-06-30 12:00:00', 9223372036854775807, null),
  (3, 10.00, 1e10, 'a', null, -1, null), (null, null, null, null, '1999-12-31 23:59:59', 5, null),
  (12, 0.01, -7.125, 'c', '2020-01-01 00:00:00', 0, null);
