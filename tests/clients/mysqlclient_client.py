"""mysqlclient (MySQLdb) against a running server: mysqlclient_client.py PORT."""

import sys

import MySQLdb
import steps

port = int(sys.argv[1])
steps.run(
    lambda: MySQLdb.connect(host="127.0.0.1", port=port, user="root", charset="utf8mb4"),
    MySQLdb.IntegrityError,
)
