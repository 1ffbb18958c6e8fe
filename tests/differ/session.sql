SET time_zone = '+00:00';
SET timestamp = 1718446272.131415;
SET optimizer_switch = 'subquery_cache=off';
SET max_error_count = 65535;
SET group_concat_max_len = 4096;
SET @i = 42, @n = NULL, @s = 'variable', @d = 1.25, @f = 1.5e0, @u = 18446744073709551615;
SET @l = _latin1'caf\xe9', @b = x'00ff', @j = '{"a": [1, 2]}', @t = '2024-02-29 12:34:56';
