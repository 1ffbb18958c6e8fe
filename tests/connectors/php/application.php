<?php
// A small application through mysqli and PDO. What it prints must not depend on the server:
// php application.php PORT.
$port = (int) $argv[1];
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);

function told(string $text): string
{
    return preg_replace("/@'(127.0.0.1|localhost)'/", "@'here'", $text);
}

function attempt(mysqli $connection, string $sql): void
{
    try {
        $result = $connection->query($sql);
        echo $connection->affected_rows, ' ', $connection->insert_id, ' ', $connection->warning_count,
            ' ', $connection->info, ' ', $sql, "\n";
        if ($result instanceof mysqli_result) {
            foreach (str_starts_with($sql, 'SELECT') ? $result->fetch_fields() : [] as $field) {
                echo '  ', json_encode([$field->name, $field->orgname, $field->table, $field->length,
                    $field->charsetnr, $field->flags, $field->type, $field->decimals]), "\n";
            }
            foreach ($result as $row) {
                echo '  ', json_encode($row, JSON_INVALID_UTF8_SUBSTITUTE), "\n";
            }
        }
    } catch (mysqli_sql_exception $e) {
        echo 'error ', $e->getCode(), ' ', $e->getSqlState(), ' ', told($e->getMessage()), "\n";
    }
}

echo "== mysqli\n";
$connection = new mysqli('127.0.0.1', 'root', '', 'connectors', $port);
$connection->set_charset('utf8mb4');
foreach ([
    'DROP TABLE IF EXISTS hp',
    'CREATE TABLE hp (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(50) UNIQUE, d DECIMAL(10,2),'
        . ' f DOUBLE, t DATETIME(3), b BLOB, n INT UNSIGNED)',
    "INSERT INTO hp (s, d) VALUES ('" . $connection->real_escape_string("gr\u{fc}n ' \" \\ \n") . "', 1.5)",
    "INSERT INTO hp (s, d) VALUES ('x', 1.234), ('y', 2)",
    "INSERT INTO hp (s) VALUES ('x')",
    'SELECT * FROM hp',
    'SELECT FROM',
    'SELECT nonsense FROM hp',
    'SELECT * FROM missing',
    'INSERT INTO hp (n) VALUES (-1)',
    'UPDATE hp SET n = 1',
    'UPDATE hp SET n = 1',
    'SHOW TABLES LIKE \'hp\'',
    'DESCRIBE hp',
    'SHOW CREATE TABLE hp',
] as $sql) {
    attempt($connection, $sql);
}
$statement = $connection->prepare('INSERT INTO hp (s, d, f, t, b, n) VALUES (?, ?, ?, ?, ?, ?)');
foreach ([['p', '12.34', 0.1, '2024-02-29 01:02:03.456', "\0\xff'", 7], [null, null, null, null, null, null]] as $row) {
    $statement->bind_param('ssdssi', ...$row);
    $statement->execute();
    echo $statement->affected_rows, ' ', $statement->insert_id, "\n";
}
$statement = $connection->prepare('SELECT * FROM hp WHERE id > ? ORDER BY id');
$first = 3;
$statement->bind_param('i', $first);
$statement->execute();
foreach ($statement->get_result() as $row) {
    echo '  ', json_encode($row, JSON_INVALID_UTF8_SUBSTITUTE), "\n";
}
$connection->begin_transaction();
attempt($connection, 'DELETE FROM hp');
$connection->rollback();
attempt($connection, 'SELECT COUNT(*) FROM hp');
$connection->multi_query('SELECT 1; DO 0; SELECT 2, 3');
do {
    $result = $connection->store_result();
    echo json_encode($result ? $result->fetch_all() : $connection->affected_rows), "\n";
} while ($connection->more_results() && $connection->next_result());
echo json_encode($connection->change_user('root', '', 'mysql')), "\n";
$connection->close();

foreach ([true, false] as $emulate) {
    echo '== PDO ', $emulate ? 'emulated' : 'prepared', "\n";
    $pdo = new PDO("mysql:host=127.0.0.1;port=$port;dbname=connectors;charset=utf8mb4", 'root', '', [
        PDO::ATTR_EMULATE_PREPARES => $emulate,
        PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
    ]);
    $pdo->exec('DROP TABLE IF EXISTS hq');
    $pdo->exec('CREATE TABLE hq (id INT AUTO_INCREMENT PRIMARY KEY, s VARCHAR(20) UNIQUE, n BIGINT)');
    $pdo->beginTransaction();
    $insert = $pdo->prepare('INSERT INTO hq (s, n) VALUES (:s, :n)');
    foreach (['a' => 1, 'b' => null, 'ü' => 9223372036854775807] as $s => $n) {
        $insert->execute(['s' => $s, 'n' => $n]);
        echo $insert->rowCount(), ' ', $pdo->lastInsertId(), "\n";
    }
    $pdo->commit();
    try {
        $insert->execute(['s' => 'a', 'n' => 5]);
    } catch (PDOException $e) {
        echo json_encode($e->errorInfo), "\n";
    }
    foreach (['SELECT FROM', 'SELECT * FROM missing WHERE id = 1'] as $sql) {
        try {
            $pdo->prepare($sql)->execute();
        } catch (PDOException $e) {
            echo json_encode($e->errorInfo), "\n";
        }
    }
    $select = $pdo->prepare('SELECT * FROM hq WHERE id >= ? ORDER BY id LIMIT ?');
    $select->bindValue(1, 1, PDO::PARAM_INT);
    $select->bindValue(2, 10, PDO::PARAM_INT);
    $select->execute();
    echo json_encode($select->getColumnMeta(1)), "\n";
    foreach ($select->fetchAll(PDO::FETCH_ASSOC) as $row) {
        echo '  ', json_encode($row), "\n";
    }
    $select->closeCursor();
    $pdo = null;
}
