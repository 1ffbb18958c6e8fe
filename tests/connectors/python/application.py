"""A small application through a DB API driver: application.py MODULE PORT. What it prints must
not depend on the server."""

import datetime
import decimal
import importlib
import re
import sys
import threading
import time

driver = importlib.import_module(sys.argv[1])
cursors = importlib.import_module(sys.argv[1] + ".cursors")
port = int(sys.argv[2])


def connect(**options):
    options = {"database": "connectors", "charset": "utf8mb4", **options}
    return driver.connect(host="127.0.0.1", port=port, user="root", **options)


def told(error):
    text = re.sub("@'(127.0.0.1|localhost)'", "@'here'", str(error.args[1:]))
    return f"{type(error).__name__} {error.args[0] if error.args else None} {text}"


def attempt(cursor, sql, parameters=None):
    try:
        count = cursor.execute(sql, parameters)
        print(count, cursor.rowcount, cursor.lastrowid, sql)
        if cursor.description:
            print("  ", cursor.description)
            for row in cursor.fetchall():
                print("  ", row)
    except driver.MySQLError as error:
        print("error:", told(error), "in", sql)


def values(connection):
    cursor = connection.cursor()
    attempt(cursor, "DROP TABLE IF EXISTS pv")
    attempt(
        cursor,
        "CREATE TABLE pv (id INT AUTO_INCREMENT PRIMARY KEY, u BIGINT UNSIGNED, f FLOAT, d DOUBLE,"
        " de DECIMAL(20,6), s VARCHAR(50), t TEXT, dt DATETIME(6), da DATE, ti TIME(3), b BLOB,"
        " y YEAR, e BOOL)",
    )
    row = (
        2**64 - 1, 1.5, 0.1, decimal.Decimal("-12345678901234.567890"), "grün ☃ 𝄞 '\"\\%", "a\nb",
        datetime.datetime(2024, 2, 29, 1, 2, 3, 456789), datetime.date(2024, 2, 29),
        datetime.timedelta(hours=-12, minutes=-34), b"\x00\xff'\\", 2024, True,
    )
    insert = "INSERT INTO pv (u,f,d,de,s,t,dt,da,ti,b,y,e) VALUES (" + ",".join(["%s"] * 12) + ")"
    for parameters in (row, (None,) * 12):
        print(cursor.execute(insert, parameters), cursor.lastrowid)
    print(cursor.executemany(insert, [row] * 5), cursor.lastrowid)
    connection.commit()
    attempt(cursor, "SELECT * FROM pv WHERE id <= %s ORDER BY id", (2,))
    attempt(cursor, "SELECT COUNT(*), SUM(u), AVG(de), MIN(dt), MAX(ti) FROM pv")
    attempt(cursor, "UPDATE pv SET y = 2025 WHERE id > %s", (3,))
    attempt(cursor, "UPDATE pv SET y = 2025 WHERE id > %s", (3,))
    connection.rollback()
    attempt(cursor, "DELETE FROM pv WHERE id IN %s", ((1, 2, 99),))
    connection.commit()


def failures(connection):
    cursor = connection.cursor()
    for sql in (
        "DROP TABLE IF EXISTS pe",
        "CREATE TABLE pe (id INT PRIMARY KEY, n INT NOT NULL, c VARCHAR(3))",
        "INSERT INTO pe VALUES (1, 1, 'a')",
        "INSERT INTO pe VALUES (1, 1, 'a')",
        "INSERT INTO pe VALUES (2, NULL, 'a')",
        "INSERT INTO pe VALUES (2, 2, 'abcd')",
        "INSERT INTO pe VALUES (2, 99999999999, 'a')",
        "INSERT INTO pe (id) VALUES (2)",
        "SELECT FROM",
        "SELECT * FROM missing",
        "SELECT nonsense FROM pe",
        "DROP TABLE missing",
        "DROP TABLE IF EXISTS missing",
        "SHOW WARNINGS",
        "INSERT IGNORE INTO pe VALUES (1, 1, 'a'), (3, 3, 'abcd')",
        "SHOW WARNINGS",
        "SELECT * FROM pe",
    ):
        attempt(cursor, sql)
    connection.rollback()


def several():
    connection = connect(client_flag=65536)
    cursor = connection.cursor()
    try:
        cursor.execute("SELECT 1 AS a; DO 0; SELECT 2 AS b, 3 AS c; SELECT nonsense")
        while True:
            print(cursor.description and cursor.fetchall())
            if not cursor.nextset():
                break
    except driver.MySQLError as error:
        print("error:", told(error))
    connection.close()


def streaming():
    connection = connect()
    cursor = connection.cursor()
    cursor.execute("DROP TABLE IF EXISTS pm")
    cursor.execute("CREATE TABLE pm (id INT PRIMARY KEY, pad VARCHAR(200))")
    cursor.executemany("INSERT INTO pm VALUES (%s, %s)", [(n, "p" * 150) for n in range(2000)])
    connection.commit()
    for kind in (cursors.SSCursor, cursors.DictCursor, cursors.SSDictCursor):
        cursor = connection.cursor(kind)
        cursor.execute("SELECT id, pad FROM pm ORDER BY id")
        total = 0
        for row in cursor:
            id, pad = row.values() if isinstance(row, dict) else row
            total += id + len(pad)
        print(kind.__name__, total)
        cursor.close()
    connection.close()


def locks():
    one, two = connect(), connect()
    first, second = one.cursor(), two.cursor()
    first.execute("DROP TABLE IF EXISTS pl")
    first.execute("CREATE TABLE pl (id INT PRIMARY KEY, n INT)")
    first.execute("INSERT INTO pl VALUES (1, 0), (2, 0)")
    one.commit()
    first.execute("UPDATE pl SET n = n + 1 WHERE id = 1")
    second.execute("UPDATE pl SET n = n + 1 WHERE id = 2")
    attempt(second, "SET innodb_lock_wait_timeout = 1")
    attempt(second, "UPDATE pl SET n = n + 1 WHERE id = 1")
    attempt(second, "SET innodb_lock_wait_timeout = 30")
    said = []

    def update(connection, cursor, id):
        try:
            cursor.execute("UPDATE pl SET n = n + 1 WHERE id = %s", (id,))
            said.append("done")
        except driver.MySQLError as error:
            said.append(told(error))
            connection.rollback()

    other = threading.Thread(target=update, args=(one, first, 2))
    other.start()
    update(two, second, 1)
    other.join()
    print("deadlock", sorted(said))
    one.rollback()
    two.rollback()
    killer, victim = connect(), connect()
    killer.cursor().execute(f"KILL {victim.thread_id()}")
    time.sleep(0.2)
    try:
        victim.cursor().execute("SELECT 1")
        print("alive")
    except driver.MySQLError as error:
        print("killed", type(error).__name__, error.args[0])


def main():
    for options in ({}, {"charset": "latin1"}, {"autocommit": True, "client_flag": 2}):
        print("==", options)
        connection = connect(**options)
        print(connection.get_autocommit() if hasattr(connection, "get_autocommit") else None)
        if options.get("charset") != "latin1":
            values(connection)
        failures(connection)
        connection.ping()
        connection.select_db("mysql")
        attempt(connection.cursor(), "SELECT DATABASE(), 'grün'")
        connection.close()
    print("== several statements")
    several()
    print("== streaming")
    streaming()
    print("== locks")
    locks()
    for options in ({"database": "nowhere"}, {"password": "wrong"}):
        try:
            connect(**options)
        except driver.MySQLError as error:
            print("refused:", told(error))


main()
