import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * A small application through JDBC. What it prints must not depend on the server:
 * Application PREFIX PORT, PREFIX being jdbc:mysql or jdbc:mariadb.
 */
public class Application {
    private final String prefix;
    private final String port;

    private Application(String prefix, String port) {
        this.prefix = prefix;
        this.port = port;
    }

    private Connection connect(String options) throws SQLException {
        boolean mysql = prefix.equals("jdbc:mysql");
        String always = mysql ? "useSSL=false&characterEncoding=UTF-8" : "sslMode=disable";
        String url = prefix + "://127.0.0.1:" + port + "/connectors?" + always + options;
        return DriverManager.getConnection(url, "root", "");
    }

    public static void main(String[] arguments) throws Exception {
        Application application = new Application(arguments[0], arguments[1]);
        application.section("values", "", application::values);
        application.section("values, prepared at the server", "&useServerPrepStmts=true",
            application::values);
        application.section("keys", "", application::generatedKeys);
        application.section("keys, batch in one statement", "&rewriteBatchedStatements=true",
            application::generatedKeys);
        application.section("transactions", "", application::transactions);
        application.section("transactions, state from the server",
            "&useLocalSessionState=true&useLocalTransactionState=true", application::transactions);
        application.section("found rows", "", application::affected);
        application.section("affected rows", "&useAffectedRows=true", application::affected);
        application.section("several statements", "&allowMultiQueries=true", application::several);
        application.section("metadata", "", application::metadata);
        application.section("metadata of information_schema",
            "&useInformationSchema=true", application::metadata);
        application.section("streaming", "", application::streaming);
        application.section("cursor", "&useServerPrepStmts=true&useCursorFetch=true",
            application::cursor);
        application.section("errors", "", application::errors);
        application.section("errors, prepared at the server", "&useServerPrepStmts=true",
            application::errors);
        application.section("batch errors", "", application::batchErrors);
        application.section("batch errors, one statement", "&rewriteBatchedStatements=true",
            application::batchErrors);
        application.section("locks", "", application::locks);
        application.section("rows that are changed in place", "", application::updatable);
        application.section("connections", "", application::connections);
    }

    private interface Part {
        void run(Connection connection) throws Exception;
    }

    private void section(String name, String options, Part part) {
        System.out.println("== " + name);
        try (Connection connection = connect(options)) {
            part.run(connection);
        } catch (SQLException e) {
            System.out.println("failed: " + told(e));
        } catch (Exception e) {
            System.out.println("failed: " + e);
        }
    }

    private static String told(SQLException e) {
        String message = String.valueOf(e.getMessage()).replaceAll("\\(conn=\\d+\\) ", "")
            .replaceAll("port=\\d+", "port").replaceAll("@'(127.0.0.1|localhost)'", "@'here'");
        return e.getErrorCode() + " " + e.getSQLState() + " " + message.split("\n")[0];
    }

    private static void execute(Connection connection, String... statements) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            for (String sql : statements) {
                statement.execute(sql);
            }
        }
    }

    private static void show(ResultSet rows) throws SQLException {
        int columns = rows.getMetaData().getColumnCount();
        while (rows.next()) {
            StringBuilder line = new StringBuilder("  ");
            for (int column = 1; column <= columns; column++) {
                line.append(column == 1 ? "" : " | ").append(rows.getString(column));
            }
            System.out.println(line);
        }
    }

    private static void query(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery(sql)) {
            show(rows);
        }
    }

    private void values(Connection connection) throws SQLException {
        execute(connection, "DROP TABLE IF EXISTS v",
            "CREATE TABLE v (id INT PRIMARY KEY, ti TINYINT, bo TINYINT(1), si SMALLINT UNSIGNED,"
                + " bi BIGINT UNSIGNED, f FLOAT, d DOUBLE, de DECIMAL(20,6), c CHAR(10),"
                + " vc VARCHAR(100) CHARACTER SET utf8mb4, tx TEXT, da DATE, tm TIME, dt DATETIME,"
                + " d6 DATETIME(6), ts TIMESTAMP NULL, y YEAR, bl BLOB, vb VARBINARY(20))");
        String sql = "INSERT INTO v VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
        try (PreparedStatement insert = connection.prepareStatement(sql)) {
            insert.setInt(1, 1);
            insert.setByte(2, (byte) -7);
            insert.setBoolean(3, true);
            insert.setInt(4, 65535);
            insert.setBigDecimal(5, new BigDecimal("18446744073709551615"));
            insert.setFloat(6, 1.5f);
            insert.setDouble(7, 0.1);
            insert.setBigDecimal(8, new BigDecimal("-12345678901234.567890"));
            insert.setString(9, "char");
            insert.setString(10, "grün ☃ 𝄞 '\"\\");
            insert.setString(11, "line\nline\ttab");
            insert.setDate(12, java.sql.Date.valueOf("2024-02-29"));
            insert.setTime(13, java.sql.Time.valueOf("12:34:56"));
            insert.setTimestamp(14, Timestamp.valueOf("2024-02-29 01:02:03"));
            insert.setTimestamp(15, Timestamp.valueOf("2024-02-29 01:02:03.456789"));
            insert.setTimestamp(16, Timestamp.valueOf("2001-09-09 01:46:40"));
            insert.setInt(17, 2024);
            insert.setBytes(18, new byte[] {0, -1, 39, 92, 10});
            insert.setBytes(19, "bytes".getBytes(StandardCharsets.UTF_8));
            System.out.println("inserted " + insert.executeUpdate());
            insert.setInt(1, 2);
            for (int position = 2; position <= 19; position++) {
                insert.setNull(position, Types.VARCHAR);
            }
            System.out.println("inserted " + insert.executeUpdate());
        }
        try (PreparedStatement select =
                connection.prepareStatement("SELECT * FROM v WHERE id >= ? ORDER BY id")) {
            select.setInt(1, 1);
            try (ResultSet rows = select.executeQuery()) {
                ResultSetMetaData meta = rows.getMetaData();
                for (int column = 1; column <= meta.getColumnCount(); column++) {
                    System.out.println("  " + meta.getColumnLabel(column) + " "
                        + meta.getColumnTypeName(column) + " " + meta.getColumnType(column) + " "
                        + meta.getPrecision(column) + "," + meta.getScale(column) + " "
                        + meta.getColumnDisplaySize(column) + " " + meta.isNullable(column) + " "
                        + meta.isSigned(column) + " " + meta.isAutoIncrement(column) + " "
                        + meta.getColumnClassName(column) + " " + meta.getTableName(column));
                }
                while (rows.next()) {
                    for (int column = 1; column <= meta.getColumnCount(); column++) {
                        Object value = rows.getObject(column);
                        String text = value instanceof byte[] bytes ? Arrays.toString(bytes)
                            : String.valueOf(value);
                        System.out.println("  " + column + ": " + text + " " + rows.wasNull());
                    }
                }
            }
        }
        try (PreparedStatement select = connection.prepareStatement(
                "SELECT ? + 1, CONCAT(?, 'x'), ? IS NULL, CAST(? AS DECIMAL(10,2))")) {
            select.setInt(1, 41);
            select.setString(2, "ü");
            select.setNull(3, Types.INTEGER);
            select.setString(4, "3.14159");
            try (ResultSet rows = select.executeQuery()) {
                show(rows);
            }
        }
    }

    private void generatedKeys(Connection connection) throws SQLException {
        execute(connection, "DROP TABLE IF EXISTS k",
            "CREATE TABLE k (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT UNIQUE, b VARCHAR(20))");
        try (PreparedStatement insert = connection.prepareStatement(
                "INSERT INTO k (a, b) VALUES (?, ?)", Statement.RETURN_GENERATED_KEYS)) {
            insert.setInt(1, 1);
            insert.setString(2, "one");
            System.out.println(insert.executeUpdate());
            show(insert.getGeneratedKeys());
            for (int number = 2; number <= 6; number++) {
                insert.setInt(1, number);
                insert.setString(2, "batch " + number);
                insert.addBatch();
            }
            int[] counts = insert.executeBatch();
            System.out.println(counts.length + " in the batch");
            show(insert.getGeneratedKeys());
        }
        try (PreparedStatement upsert = connection.prepareStatement(
                "INSERT INTO k (a, b) VALUES (?, ?) ON DUPLICATE KEY UPDATE b = VALUES(b)")) {
            for (int number = 5; number <= 8; number++) {
                upsert.setInt(1, number);
                upsert.setString(2, "again " + number);
                upsert.addBatch();
            }
            System.out.println(upsert.executeBatch().length + " in the batch");
        }
        query(connection, "SELECT a, b FROM k ORDER BY a");
        try (Statement statement = connection.createStatement()) {
            statement.executeUpdate("INSERT INTO k (a, b) VALUES (100, 'x'), (101, 'y'), (102, 'z')",
                Statement.RETURN_GENERATED_KEYS);
            ResultSet keys = statement.getGeneratedKeys();
            int count = 0;
            while (keys.next()) {
                count++;
            }
            System.out.println(count + " keys");
            for (String sql : new String[] {"UPDATE k SET b = 'u' WHERE a = 100",
                    "DELETE FROM k WHERE a > 100", "DELETE FROM k WHERE a = 999"}) {
                statement.addBatch(sql);
            }
            System.out.println(Arrays.toString(statement.executeBatch()));
        }
    }

    private void transactions(Connection connection) throws SQLException {
        execute(connection, "DROP TABLE IF EXISTS t", "CREATE TABLE t (id INT PRIMARY KEY, a INT)");
        connection.setAutoCommit(false);
        execute(connection, "INSERT INTO t VALUES (1, 10)");
        connection.rollback();
        execute(connection, "INSERT INTO t VALUES (2, 20)");
        connection.commit();
        execute(connection, "INSERT INTO t VALUES (3, 30)");
        Savepoint savepoint = connection.setSavepoint("here");
        execute(connection, "INSERT INTO t VALUES (4, 40)");
        connection.rollback(savepoint);
        connection.commit();
        connection.commit();
        connection.setAutoCommit(true);
        query(connection, "SELECT * FROM t ORDER BY id");
        for (int level : new int[] {Connection.TRANSACTION_READ_UNCOMMITTED,
                Connection.TRANSACTION_READ_COMMITTED, Connection.TRANSACTION_SERIALIZABLE,
                Connection.TRANSACTION_REPEATABLE_READ}) {
            connection.setTransactionIsolation(level);
            System.out.println("level " + connection.getTransactionIsolation());
            query(connection, "SELECT @@tx_isolation");
        }
        connection.setReadOnly(true);
        try {
            execute(connection, "INSERT INTO t VALUES (9, 90)");
            System.out.println("written");
        } catch (SQLException e) {
            System.out.println("read only: " + told(e));
        }
        connection.setReadOnly(false);
        System.out.println("valid " + connection.isValid(5) + " " + connection.getCatalog());
    }

    private void affected(Connection connection) throws SQLException {
        execute(connection, "DROP TABLE IF EXISTS a", "CREATE TABLE a (id INT PRIMARY KEY, n INT)");
        try (Statement statement = connection.createStatement()) {
            for (String sql : new String[] {"INSERT INTO a VALUES (1, 1), (2, 2), (3, 3)",
                    "UPDATE a SET n = 1", "UPDATE a SET n = 1", "UPDATE a SET n = 2 WHERE id = 77",
                    "INSERT INTO a VALUES (1, 5) ON DUPLICATE KEY UPDATE n = 5",
                    "INSERT INTO a VALUES (1, 5) ON DUPLICATE KEY UPDATE n = 5",
                    "INSERT INTO a VALUES (4, 5) ON DUPLICATE KEY UPDATE n = 5",
                    "REPLACE INTO a VALUES (4, 6)", "INSERT IGNORE INTO a VALUES (4, 6), (5, 6)",
                    "DELETE FROM a"}) {
                System.out.println(statement.executeUpdate(sql) + " " + sql);
            }
        }
    }

    private void several(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            boolean rows = statement.execute("DROP TABLE IF EXISTS m; CREATE TABLE m (id INT"
                + " AUTO_INCREMENT PRIMARY KEY, a INT); INSERT INTO m (a) VALUES (1), (2);"
                + " SELECT * FROM m ORDER BY id; UPDATE m SET a = a + 1; SELECT SUM(a) FROM m");
            while (true) {
                if (rows) {
                    show(statement.getResultSet());
                } else if (statement.getUpdateCount() == -1) {
                    break;
                } else {
                    System.out.println("  count " + statement.getUpdateCount());
                }
                rows = statement.getMoreResults();
            }
            try {
                statement.execute("INSERT INTO m (a) VALUES (9); SELECT nonsense; SELECT 1");
                System.out.println("first " + statement.getUpdateCount());
                statement.getMoreResults();
            } catch (SQLException e) {
                System.out.println(told(e));
            }
        }
        query(connection, "SELECT COUNT(*) FROM m");
    }

    private void metadata(Connection connection) throws SQLException {
        execute(connection, "DROP TABLE IF EXISTS md_child, md",
            "CREATE TABLE md (id INT UNSIGNED NOT NULL AUTO_INCREMENT, name VARCHAR(40) NOT NULL"
                + " DEFAULT 'x' COMMENT 'a name', price DECIMAL(10,2), big BIGINT, day DATE,"
                + " at DATETIME(3), txt TEXT, raw VARBINARY(16), flag TINYINT(1),"
                + " PRIMARY KEY (id), UNIQUE KEY by_name (name), KEY by_price (price, day))"
                + " COMMENT 'the table'");
        DatabaseMetaData meta = connection.getMetaData();
        System.out.println(meta.supportsTransactions() + " " + meta.getIdentifierQuoteString() + " "
            + meta.storesLowerCaseIdentifiers() + " " + meta.getDefaultTransactionIsolation());
        some(meta.getCatalogs(), "connectors", "TABLE_CAT");
        some(meta.getTables("connectors", null, "md", new String[] {"TABLE"}), null, "TABLE_CAT",
            "TABLE_NAME", "TABLE_TYPE", "REMARKS");
        some(meta.getTables("connectors", null, "nothing%", null), null, "TABLE_NAME");
        some(meta.getColumns("connectors", null, "md", "%"), null, "TABLE_NAME", "COLUMN_NAME",
            "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "NULLABLE", "REMARKS",
            "COLUMN_DEF", "CHAR_OCTET_LENGTH", "ORDINAL_POSITION", "IS_NULLABLE",
            "IS_AUTOINCREMENT");
        some(meta.getPrimaryKeys("connectors", null, "md"), null, "COLUMN_NAME", "KEY_SEQ",
            "PK_NAME");
        some(meta.getIndexInfo("connectors", null, "md", false, false), null, "NON_UNIQUE",
            "INDEX_NAME", "TYPE", "ORDINAL_POSITION", "COLUMN_NAME", "ASC_OR_DESC");
        some(meta.getImportedKeys("connectors", null, "md"), null, "FK_NAME");
        some(meta.getBestRowIdentifier("connectors", null, "md", DatabaseMetaData.bestRowSession,
            true), null, "COLUMN_NAME", "DATA_TYPE");
        some(meta.getTableTypes(), "TABLE", "TABLE_TYPE");
        some(meta.getProcedures("connectors", null, "%"), null, "PROCEDURE_NAME");
        try (PreparedStatement statement =
                connection.prepareStatement("SELECT id, price * 2 AS twice FROM md WHERE id = ?")) {
            ResultSetMetaData columns = statement.getMetaData();
            for (int column = 1; columns != null && column <= columns.getColumnCount(); column++) {
                System.out.println("  " + columns.getColumnLabel(column) + " "
                    + columns.getColumnTypeName(column));
            }
            System.out.println(statement.getParameterMetaData().getParameterCount());
        }
    }

    /** The named columns of all rows, or of those whose first column is the given text. */
    private static void some(ResultSet rows, String only, String... names) throws SQLException {
        while (rows.next()) {
            StringBuilder line = new StringBuilder("  ");
            for (String name : names) {
                line.append(rows.getString(name)).append(" | ");
            }
            if (only == null || only.equals(rows.getString(names[0]))) {
                System.out.println(line);
            }
        }
        rows.close();
    }

    private static void fill(Connection connection) throws SQLException {
        execute(connection, "DROP TABLE IF EXISTS s",
            "CREATE TABLE s (id INT PRIMARY KEY, pad VARCHAR(200))");
        connection.setAutoCommit(false);
        try (PreparedStatement insert =
                connection.prepareStatement("INSERT INTO s VALUES (?, REPEAT('p', 150))")) {
            for (int id = 1; id <= 3000; id++) {
                insert.setInt(1, id);
                insert.addBatch();
            }
            insert.executeBatch();
        }
        connection.commit();
        connection.setAutoCommit(true);
    }

    private void streaming(Connection connection) throws SQLException {
        fill(connection);
        try (Statement statement = connection.createStatement(ResultSet.TYPE_FORWARD_ONLY,
                ResultSet.CONCUR_READ_ONLY)) {
            statement.setFetchSize(prefix.equals("jdbc:mysql") ? Integer.MIN_VALUE : 100);
            sum(statement.executeQuery("SELECT id, pad FROM s ORDER BY id"));
            try (ResultSet rows = statement.executeQuery("SELECT id FROM s ORDER BY id")) {
                rows.next();
                System.out.println("first " + rows.getInt(1));
            }
            statement.setMaxRows(5);
            sum(statement.executeQuery("SELECT id, pad FROM s ORDER BY id"));
        }
        query(connection, "SELECT COUNT(*) FROM s");
    }

    private void cursor(Connection connection) throws SQLException {
        fill(connection);
        try (PreparedStatement select =
                connection.prepareStatement("SELECT id, pad FROM s WHERE id > ? ORDER BY id")) {
            select.setFetchSize(50);
            select.setInt(1, 10);
            sum(select.executeQuery());
            select.setInt(1, 2990);
            sum(select.executeQuery());
        }
    }

    private static void sum(ResultSet rows) throws SQLException {
        long count = 0;
        long sum = 0;
        while (rows.next()) {
            count++;
            sum += rows.getInt(1) + rows.getString(2).length();
        }
        rows.close();
        System.out.println(count + " rows, sum " + sum);
    }

    private void errors(Connection connection) throws SQLException {
        execute(connection, "DROP TABLE IF EXISTS e",
            "CREATE TABLE e (id INT PRIMARY KEY, n INT NOT NULL, c CHAR(3))",
            "INSERT INTO e VALUES (1, 1, 'abc')");
        for (String sql : new String[] {"INSERT INTO e VALUES (1, 1, 'abc')", "SELECT FROM",
                "SELECT * FROM missing", "SELECT missing FROM e", "INSERT INTO e (id) VALUES (2)",
                "INSERT INTO e VALUES (2, NULL, 'a')", "INSERT INTO e VALUES (2, 2, 'abcd')",
                "INSERT INTO e VALUES (2, 'x', 'a')", "CREATE TABLE e (id INT)",
                "DROP TABLE missing", "USE missing", "SELECT 1 +",
                "INSERT INTO e VALUES (1)", "CREATE DATABASE connectors"}) {
            try (PreparedStatement statement = connection.prepareStatement(sql)) {
                statement.execute();
                System.out.println("accepted: " + sql);
            } catch (SQLException e) {
                System.out.println(e.getClass().getSimpleName() + " " + told(e));
            }
        }
        try (Statement statement = connection.createStatement()) {
            statement.execute("SELECT 1 / 0");
            SQLException warning = statement.getWarnings();
            System.out.println("warning " + (warning == null ? null : told(warning)));
        }
        try (PreparedStatement statement = connection.prepareStatement("SELECT ? + ?")) {
            statement.setInt(1, 1);
            statement.execute();
            System.out.println("accepted");
        } catch (SQLException e) {
            System.out.println("a parameter is missing: " + e.getSQLState());
        }
        query(connection, "SELECT * FROM e");
    }

    private void batchErrors(Connection connection) throws SQLException {
        execute(connection, "DROP TABLE IF EXISTS be", "CREATE TABLE be (id INT PRIMARY KEY)",
            "INSERT INTO be VALUES (3)");
        try (PreparedStatement insert = connection.prepareStatement("INSERT INTO be VALUES (?)")) {
            for (int id = 1; id <= 5; id++) {
                insert.setInt(1, id);
                insert.addBatch();
            }
            insert.executeBatch();
        } catch (BatchUpdateException e) {
            System.out.println(Arrays.toString(e.getUpdateCounts()) + " " + told(e));
        }
        query(connection, "SELECT * FROM be ORDER BY id");
    }

    private void locks(Connection connection) throws Exception {
        execute(connection, "DROP TABLE IF EXISTS l", "CREATE TABLE l (id INT PRIMARY KEY, n INT)",
            "INSERT INTO l VALUES (1, 0), (2, 0)");
        try (Connection other = connect("")) {
            connection.setAutoCommit(false);
            other.setAutoCommit(false);
            execute(connection, "UPDATE l SET n = n + 1 WHERE id = 1");
            execute(other, "SET innodb_lock_wait_timeout = 1");
            try {
                execute(other, "UPDATE l SET n = n + 1 WHERE id = 1");
            } catch (SQLException e) {
                System.out.println("timeout: " + told(e));
            }
            other.rollback();
            execute(other, "SET innodb_lock_wait_timeout = 30");
            execute(other, "UPDATE l SET n = n + 1 WHERE id = 2");
            ExecutorService pool = Executors.newSingleThreadExecutor();
            CountDownLatch begun = new CountDownLatch(1);
            Future<String> first = pool.submit(() -> {
                begun.countDown();
                return attempt(connection, "UPDATE l SET n = n + 1 WHERE id = 2");
            });
            begun.await();
            String second = attempt(other, "UPDATE l SET n = n + 1 WHERE id = 1");
            String[] both = {first.get(), second};
            Arrays.sort(both);
            System.out.println("deadlock: " + Arrays.toString(both));
            pool.shutdown();
            connection.rollback();
            other.rollback();
        }
        connection.setAutoCommit(true);
        query(connection, "SELECT * FROM l ORDER BY id");
        try (Statement statement = connection.createStatement()) {
            statement.setQueryTimeout(1);
            statement.execute("SELECT SLEEP(20)");
            System.out.println("slept");
        } catch (SQLException e) {
            System.out.println("query timeout: " + e.getClass().getSimpleName());
        }
        System.out.println("valid " + connection.isValid(5));
    }

    private static String attempt(Connection connection, String sql) {
        try {
            execute(connection, sql);
            return "done";
        } catch (SQLException e) {
            try {
                connection.rollback();
            } catch (SQLException again) {
                return told(again);
            }
            return told(e);
        }
    }

    private void updatable(Connection connection) throws SQLException {
        execute(connection, "DROP TABLE IF EXISTS u",
            "CREATE TABLE u (id INT PRIMARY KEY, a VARCHAR(20))",
            "INSERT INTO u VALUES (1, 'one'), (2, 'two')");
        try (Statement statement = connection.createStatement(ResultSet.TYPE_SCROLL_SENSITIVE,
                ResultSet.CONCUR_UPDATABLE);
                ResultSet rows = statement.executeQuery("SELECT id, a FROM u ORDER BY id")) {
            rows.next();
            rows.updateString(2, "changed");
            rows.updateRow();
            rows.last();
            rows.deleteRow();
            rows.moveToInsertRow();
            rows.updateInt(1, 3);
            rows.updateString(2, "three");
            rows.insertRow();
        }
        query(connection, "SELECT * FROM u ORDER BY id");
    }

    private void connections(Connection connection) throws SQLException {
        try (Connection other = connect("&sessionVariables=sql_mode='ANSI_QUOTES'")) {
            query(other, "SELECT @@sql_mode LIKE '%ANSI_QUOTES%'");
            other.setCatalog("mysql");
            System.out.println(other.getCatalog());
        }
        try {
            DriverManager.getConnection(
                prefix + "://127.0.0.1:" + port + "/nowhere?" + "user=root").close();
        } catch (SQLException e) {
            System.out.println(told(e));
        }
        try {
            DriverManager.getConnection(
                prefix + "://127.0.0.1:" + port + "/connectors", "nobody", "wrong").close();
        } catch (SQLException e) {
            System.out.println(told(e));
        }
    }
}
