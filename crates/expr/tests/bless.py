#!/usr/bin/env python3
"""Rewrites the expectations in data/*.txt from a live MariaDB 10.11.

    bless.py "mariadb -uroot -S SOCKET" [file ...]

Expression files (data/*.txt but store.txt): a line is an expression, optionally followed by
` => value : TYPE length decimals collation FLAGS`; lines of two blanks below it are its warnings.
`#` begins a comment; `##` a line of SQL run before what follows it (mode, time zone ...).
Expressions may name the columns of `tests/data/table.sql`.

data/store.txt: `type:` begins a column type, the lines below it are values; each is stored in strict
mode and without (`| ` between the two outcomes): the value read back, then warnings.
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SETUP = """set names utf8mb4; set time_zone='+00:00'; set timestamp=1600000000.123456;
set sql_mode=default; create database if not exists sbtest; use sbtest;
"""


def run(client, sql, *options):
    command = client.split() + ["--default-character-set=utf8mb4", "-f", *options]
    done = subprocess.run(command, input=sql.encode(), stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    return done.stdout.decode("utf8", "backslashreplace")


def sections(output):
    """Splits at the marker rows `@@@n`."""
    result, current = {}, None
    for line in output.split("\n"):
        if line.startswith("@@@"):
            key, _, part = line[3:].partition(".")
            current = result.setdefault(int(key), {}).setdefault(part, [])
        elif current is not None:
            current.append(line)
    return result


def table_sql():
    with open(os.path.join(HERE, "data", "table.sql")) as f:
        return f.read()


def warnings(lines):
    found = []
    for line in lines:
        fields = line.split("\t")
        if len(fields) == 3 and fields[0] in ("Error", "Warning", "Note"):
            found.append(" ".join(fields))
    # The client gets the first error.
    errors = [i for i, w in enumerate(found) if w.startswith("Error")]
    found = found[:errors[0] + 1] if errors else found
    # The server warns twice where it converts in two steps; once is enough.
    return [w for i, w in enumerate(found) if i == 0 or w != found[i - 1]]


def metadata(lines):
    text = "\n".join(lines)
    found = re.search(r"^Type: +(\w+)\nCollation: +\S+ \((\d+)\)\nLength: +(\d+)\n"
                      r"Max_length: +\d+\nDecimals: +(\d+)\nFlags: +(.*)$", text, re.M)
    if not found:
        return None
    kind, collation, length, decimals, flags = found.groups()
    flags = [flag for flag in flags.split() if flag not in ("NO_DEFAULT_VALUE", "PART_KEY")]
    return f"{kind} {length} {decimals} {collation} {'|'.join(flags)}"


def bless_expressions(client, path):
    table = "a" if "aggregates" in path else "t"
    with open(path, encoding="utf8") as f:
        lines = f.read().split("\n")
    items, sql, meta = [], [SETUP, table_sql()], [SETUP, table_sql()]
    for line in lines:
        if line.startswith("##"):
            sql.append(line[2:] + ";")
            meta.append(line[2:] + ";")
            items.append((None, line))
        elif line.startswith("#") or not line.strip():
            items.append((None, line))
        elif not line.startswith("  "):
            expression = line.split(" => ")[0].strip()
            n = len(items)
            items.append((n, expression))
            sql.append(f"select '@@@{n}.v' as m; select {expression} from {table};\n"
                       f"show warnings;")
            meta.append(f"select '@@@{n}.m' as m; select {expression} from {table};")
    values = sections(run(client, "\n".join(sql), "-N"))
    types = {}
    raw = run(client, "\n".join(meta), "-t", "--column-type-info")
    current = None
    for line in raw.split("\n"):
        if line.startswith("| @@@"):
            current = types.setdefault(int(line[5:].split(".")[0]), [])
        elif current is not None:
            current.append(line)
    out = []
    for n, text in items:
        if n is None:
            out.append(text)
            continue
        rows = values.get(n, {}).get("v", [])
        found = warnings(rows)
        plain = [r for r in rows if r not in ("",) and " ".join(r.split("\t")) not in found]
        if found and found[-1].startswith("Error"):
            out.append(f"{text} => ERROR")
        else:
            value = plain[0] if plain else ""
            out.append(f"{text} => {value} : {metadata(types.get(n, []))}")
        out.extend("  " + w for w in found)
    with open(path, "w", encoding="utf8") as f:
        f.write("\n".join(out))


def bless_store(client, path):
    with open(path, encoding="utf8") as f:
        lines = f.read().split("\n")
    items, sql = [], [SETUP]
    for line in lines:
        if line.endswith(":") and not line.startswith(" "):
            sql.append(f"drop table if exists st; create table st (c {line[:-1]}) default charset utf8mb4;")
            items.append((None, line))
        elif line.startswith("#") or not line.strip():
            items.append((None, line))
        elif line.startswith("  ") and not line.startswith("    "):
            value = line.split(" => ")[0].strip()
            n = len(items)
            items.append((n, value))
            for part, mode in (("s", "default"), ("l", "''")):
                sql.append(f"set sql_mode={mode}; delete from st; select '@@@{n}.{part}' as m; "
                           f"insert into st values ({value}); show warnings; "
                           f"select '@@@{n}.{part}v' as m; select concat(c) from st;")
    found = sections(run(client, "\n".join(sql), "-N"))
    out = []
    for n, text in items:
        if n is None:
            out.append(text)
            continue
        outcomes = []
        for part in ("s", "l"):
            notes = warnings(found.get(n, {}).get(part, []))
            rows = found.get(n, {}).get(part + "v", [])
            value = rows[0] if rows else "(none)"
            outcomes.append("; ".join([value] + notes))
        out.append(f"  {text} => " + " | ".join(outcomes))
    with open(path, "w", encoding="utf8") as f:
        f.write("\n".join(out))


def main():
    client = sys.argv[1]
    names = sys.argv[2:] or sorted(
        name for name in os.listdir(os.path.join(HERE, "data")) if name.endswith(".txt"))
    for name in names:
        path = os.path.join(HERE, "data", os.path.basename(name))
        (bless_store if os.path.basename(name).startswith("store") else bless_expressions)(
            client, path)


main()
