"""What every driver does: the same steps through its DB API connection."""

import datetime
import decimal


def run(connect, error_class):
    connection = connect()
    cursor = connection.cursor()
    cursor.execute("SELECT 1, 'text', NULL, 1.50, VERSION()")
    row = cursor.fetchone()
    assert row[:4] == (1, "text", None, decimal.Decimal("1.50")), row
    assert "-MariaDB-gannet-" in row[4], row

    cursor.execute("CREATE DATABASE IF NOT EXISTS clients")
    cursor.execute("USE clients")
    cursor.execute("DROP TABLE IF EXISTS t")
    cursor.execute(
        "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a VARCHAR(40) UNIQUE,"
        " b BIGINT UNSIGNED, c DECIMAL(12,3), d DATETIME(6), e DOUBLE, f BLOB)"
    )
    when = datetime.datetime(2024, 2, 29, 1, 2, 3, 450000)
    rows = [
        ("grün ☃ 𝄞", 2**64 - 1, decimal.Decimal("12.345"), when, 0.1, b"\x00\xff'\\"),
        (None, None, None, None, None, None),
    ]
    insert = "INSERT INTO t (a, b, c, d, e, f) VALUES (%s, %s, %s, %s, %s, %s)"
    cursor.execute(insert, rows[0])
    assert cursor.lastrowid == 1 and cursor.rowcount == 1
    cursor.execute(insert, rows[1])
    connection.commit()
    cursor.execute("SELECT a, b, c, d, e, f FROM t ORDER BY id")
    assert list(cursor.fetchall()) == rows

    try:
        cursor.execute(insert, rows[0])
        raise SystemExit("a duplicate key was accepted")
    except error_class as error:
        assert error.args[0] == 1062, error
    connection.rollback()

    cursor.execute("UPDATE t SET b = b - 1 WHERE a = %s", ("grün ☃ 𝄞",))
    assert cursor.rowcount == 1
    connection.rollback()
    cursor.execute("SELECT b FROM t WHERE id = 1")
    assert cursor.fetchone() == (2**64 - 1,)
    cursor.execute("SELECT REPEAT('x', 100000)")
    assert len(cursor.fetchone()[0]) == 100000
    cursor.execute("DROP DATABASE clients")
    connection.close()
