"""PyMySQL against a running server: pymysql_client.py PORT."""

import sys

import pymysql
import steps

port = int(sys.argv[1])
steps.run(
    lambda: pymysql.connect(host="127.0.0.1", port=port, user="root", charset="utf8mb4"),
    pymysql.err.IntegrityError,
)
