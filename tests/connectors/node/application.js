// A small application through mysql2. What it prints must not depend on the server:
// node application.js PORT.
'use strict';

const mysql = require('mysql2/promise');

const base = {
  host: '127.0.0.1',
  port: Number(process.argv[2]),
  user: 'root',
  database: 'connectors',
};

function told(error) {
  const text = String(error.sqlMessage || error.message).replace(/@'(127.0.0.1|localhost)'/, "@'here'");
  return `${error.errno} ${error.sqlState} ${error.code} ${text}`;
}

async function attempt(name, action) {
  try {
    print(name, await action());
  } catch (error) {
    console.log(name, 'error:', told(error));
  }
}

function print(name, answer) {
  const [rows, fields] = answer;
  if (!Array.isArray(rows)) {
    const { affectedRows, insertId, info, warningStatus, changedRows } = rows;
    console.log(name, JSON.stringify({ affectedRows, insertId, info, warningStatus, changedRows }));
    return;
  }
  for (const field of fields || []) {
    if (field && field.name) {
      console.log('  field', field.name, field.type ?? field.columnType, field.flags,
        field.columnLength, field.decimals, field.characterSet, field.table, field.orgName);
    }
  }
  console.log(name, JSON.stringify(rows, 
    (key, value) => key === 'serverStatus' ? undefined : value));
}

async function values(connection, how) {
  await connection.query('DROP TABLE IF EXISTS nv');
  await connection.query('CREATE TABLE nv (id INT AUTO_INCREMENT PRIMARY KEY, u BIGINT UNSIGNED,'
    + ' d DOUBLE, de DECIMAL(20,6), s VARCHAR(50), dt DATETIME(3), da DATE, ti TIME, b BLOB,'
    + ' e TINYINT(1), y YEAR, f FLOAT)');
  const rows = [
    ['18446744073709551615', 0.1, '-12345678901234.567890', 'grün ☃ 𝄞 \'"\\',
      '2024-02-29 01:02:03.456', '2024-02-29', '-12:34:56', Buffer.from([0, 255, 39, 92]), true,
      2024, 1.5],
    [null, null, null, null, null, null, null, null, null, null, null],
  ];
  for (const row of rows) {
    await attempt(how, () => connection[how](
      'INSERT INTO nv (u, d, de, s, dt, da, ti, b, e, y, f) VALUES (?,?,?,?,?,?,?,?,?,?,?)', row));
  }
  await attempt(how, () => connection[how]('SELECT * FROM nv WHERE id >= ? ORDER BY id', [1]));
  await attempt(how, () => connection[how]('SELECT ? + 1, CONCAT(?, "x"), ? IS NULL', [41, 'ü', null]));
  await attempt(how, () => connection[how]('UPDATE nv SET s = "x" WHERE id > ?', [0]));
  await attempt(how, () => connection[how]('UPDATE nv SET s = "x" WHERE id > ?', [0]));
}

async function failures(connection) {
  await connection.query('DROP TABLE IF EXISTS ne');
  await connection.query('CREATE TABLE ne (id INT PRIMARY KEY, n INT NOT NULL)');
  for (const how of ['query', 'execute']) {
    for (const sql of ['INSERT INTO ne VALUES (1, 1)', 'INSERT INTO ne VALUES (1, 1)', 'SELECT FROM',
      'SELECT * FROM missing', 'SELECT nonsense FROM ne', 'INSERT INTO ne VALUES (2, NULL)']) {
      await attempt(`${how} ${sql}`, () => connection[how](sql));
    }
  }
}

async function locks() {
  const one = await mysql.createConnection(base);
  const two = await mysql.createConnection(base);
  await one.query('DROP TABLE IF EXISTS nl');
  await one.query('CREATE TABLE nl (id INT PRIMARY KEY, n INT)');
  await one.query('INSERT INTO nl VALUES (1, 0), (2, 0)');
  await one.beginTransaction();
  await two.beginTransaction();
  await one.query('UPDATE nl SET n = n + 1 WHERE id = 1');
  await two.query('UPDATE nl SET n = n + 1 WHERE id = 2');
  await two.query('SET innodb_lock_wait_timeout = 1');
  await attempt('timeout', () => two.query('UPDATE nl SET n = n + 1 WHERE id = 1'));
  await two.query('SET innodb_lock_wait_timeout = 30');
  const update = (connection, id) => connection
    .execute('UPDATE nl SET n = n + 1 WHERE id = ?', [id])
    .then(() => 'done', async (error) => {
      await connection.rollback();
      return told(error);
    });
  const both = await Promise.all([update(one, 2), update(two, 1)]);
  console.log('deadlock', both.sort());
  await one.rollback();
  await two.rollback();
  await one.end();
  await two.end();
}

async function main() {
  for (const options of [{}, { multipleStatements: true, dateStrings: true, supportBigNumbers: true },
    { namedPlaceholders: true, charset: 'latin1', flags: ['-FOUND_ROWS'] },
    { rowsAsArray: true, timezone: 'Z', bigNumberStrings: true, supportBigNumbers: true }]) {
    console.log('==', JSON.stringify(options));
    const connection = await mysql.createConnection({ ...base, ...options });
    await connection.ping();
    if (!options.namedPlaceholders) {
      await values(connection, 'query');
      await values(connection, 'execute');
    } else {
      await attempt('named', () => connection.execute('SELECT :a + :b AS sum', { a: 1, b: 2 }));
      await attempt('latin1', () => connection.query('SELECT "grün" AS g, LENGTH("grün") AS l'));
    }
    await failures(connection);
    if (options.multipleStatements) {
      await attempt('several', () => connection.query(
        'SELECT 1 AS a; UPDATE ne SET n = 5; SELECT n FROM ne; SELECT nonsense'));
      await attempt('several', () => connection.query('SELECT 1 AS a; UPDATE ne SET n = 6; SELECT n FROM ne'));
    }
    await connection.changeUser({ user: 'root', database: 'mysql' });
    await attempt('database', () => connection.query('SELECT DATABASE() AS d'));
    await connection.end();
  }
  console.log('== locks');
  await locks();
  console.log('== many rows and a pool');
  const pool = mysql.createPool({ ...base, connectionLimit: 4 });
  await pool.query('DROP TABLE IF EXISTS nm');
  await pool.query('CREATE TABLE nm (id BIGINT AUTO_INCREMENT PRIMARY KEY, pad VARCHAR(200))');
  const many = Array.from({ length: 2000 }, () => ['p'.repeat(150)]);
  await attempt('insert', () => pool.query('INSERT INTO nm (pad) VALUES ?', [many]));
  await Promise.all(Array.from({ length: 40 }, () => pool.execute('SELECT COUNT(*) AS c FROM nm')));
  // Numbers are sent as DOUBLE, and find keys of BIGINT all the same.
  for (const [condition, ids] of [['id = ?', [5]], ['id IN (?, ?)', [5, 6]], ['id BETWEEN ? AND ?', [5, 7]]]) {
    const [plan] = await pool.execute(`EXPLAIN SELECT pad FROM nm WHERE ${condition}`, ids);
    const [found] = await pool.execute(`SELECT id FROM nm WHERE ${condition} ORDER BY id`, ids);
    console.log(condition, plan.map(({ type, key }) => [type, key]), found);
  }
  const connection = await pool.getConnection();
  let count = 0;
  await new Promise((resolve, reject) => {
    connection.connection.query('SELECT id, pad FROM nm ORDER BY id').stream()
      .on('data', (row) => { count += row.id + row.pad.length; })
      .on('end', resolve)
      .on('error', reject);
  });
  console.log('streamed', count);
  connection.release();
  await pool.end();
  await attempt('refused', () => mysql.createConnection({ ...base, user: 'nobody', password: 'x' }));
  await attempt('refused', () => mysql.createConnection({ ...base, database: 'nowhere' }));
}

main().catch((error) => {
  console.log('failed', told(error));
  process.exitCode = 1;
});
