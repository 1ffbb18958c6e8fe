// A small application through go-sql-driver/mysql. What it prints must not depend on the server:
// connectors PORT.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

var port string

func open(options string) *sql.DB {
	db, err := sql.Open("mysql", "root@tcp(127.0.0.1:"+port+")/connectors?"+options)
	if err != nil {
		fmt.Println("open:", err)
		os.Exit(1)
	}
	db.SetMaxOpenConns(1)
	return db
}

func told(err error) string {
	var server *mysql.MySQLError
	if errors.As(err, &server) {
		message := strings.NewReplacer("@'127.0.0.1'", "@'here'", "@'localhost'", "@'here'")
		return fmt.Sprintf("%d %s %s", server.Number, server.SQLState, message.Replace(server.Message))
	}
	return fmt.Sprint(err)
}

func execute(db *sql.DB, statements ...string) {
	for _, statement := range statements {
		result, err := db.Exec(statement)
		if err != nil {
			fmt.Println("error:", told(err), "in", statement)
			continue
		}
		rows, _ := result.RowsAffected()
		id, _ := result.LastInsertId()
		fmt.Println(rows, id, statement)
	}
}

func show(rows *sql.Rows, err error) {
	if err != nil {
		fmt.Println("error:", told(err))
		return
	}
	defer rows.Close()
	for {
		types, _ := rows.ColumnTypes()
		for _, column := range types {
			length, hasLength := column.Length()
			precision, scale, isDecimal := column.DecimalSize()
			nullable, _ := column.Nullable()
			fmt.Println(" ", column.Name(), column.DatabaseTypeName(), column.ScanType(), length,
				hasLength, precision, scale, isDecimal, nullable)
		}
		for rows.Next() {
			values := make([]any, len(types))
			places := make([]any, len(types))
			for i := range values {
				places[i] = &values[i]
			}
			if err := rows.Scan(places...); err != nil {
				fmt.Println("scan:", err)
				return
			}
			for _, value := range values {
				if bytes, ok := value.([]byte); ok {
					fmt.Printf(" %q", bytes)
				} else {
					fmt.Printf(" %T(%v)", value, value)
				}
			}
			fmt.Println()
		}
		if err := rows.Err(); err != nil {
			fmt.Println("rows:", told(err))
		}
		if !rows.NextResultSet() {
			return
		}
	}
}

func values(db *sql.DB) {
	execute(db, "DROP TABLE IF EXISTS gv",
		"CREATE TABLE gv (id INT AUTO_INCREMENT PRIMARY KEY, u BIGINT UNSIGNED, f FLOAT, d DOUBLE,"+
			" de DECIMAL(20,6), s VARCHAR(50), t TEXT, dt DATETIME(6), da DATE, ti TIME, b BLOB,"+
			" bo BOOL NOT NULL)")
	when := time.Date(2024, 2, 29, 1, 2, 3, 456789000, time.UTC)
	insert := "INSERT INTO gv (u, f, d, de, s, t, dt, da, ti, b, bo) VALUES (?,?,?,?,?,?,?,?,?,?,?)"
	for _, row := range [][]any{
		{uint64(18446744073709551615), 1.5, 0.1, "-12345678901234.567890", "grün ☃ 𝄞 '\"\\", "a\nb",
			when, when, "-12:34:56", []byte{0, 255, 39, 92}, true},
		{nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, false},
	} {
		result, err := db.Exec(insert, row...)
		if err != nil {
			fmt.Println("error:", told(err))
			continue
		}
		fmt.Println(result.LastInsertId())
	}
	show(db.Query("SELECT * FROM gv ORDER BY id"))
	show(db.Query("SELECT * FROM gv WHERE id > ? ORDER BY id", 0))
	show(db.Query("SELECT ?, ? + 1, ? IS NULL", "ü", 41, nil))
}

func transactions(db *sql.DB) {
	execute(db, "DROP TABLE IF EXISTS gt", "CREATE TABLE gt (id INT PRIMARY KEY)")
	for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelSerializable} {
		tx, err := db.BeginTx(context.Background(), &sql.TxOptions{Isolation: level})
		if err != nil {
			fmt.Println("begin:", told(err))
			continue
		}
		statement, err := tx.Prepare("INSERT INTO gt VALUES (?)")
		fmt.Println(err)
		for id := range 3 {
			_, err = statement.Exec(int(level)*10 + id)
			fmt.Println(err)
		}
		if level == sql.LevelSerializable {
			fmt.Println(tx.Rollback())
		} else {
			fmt.Println(tx.Commit())
		}
	}
	tx, err := db.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
	if err == nil {
		_, err = tx.Exec("INSERT INTO gt VALUES (99)")
		fmt.Println("read only:", told(err))
		tx.Rollback()
	}
	show(db.Query("SELECT * FROM gt ORDER BY id"))
}

func failures(db *sql.DB) {
	execute(db, "DROP TABLE IF EXISTS ge", "CREATE TABLE ge (id INT PRIMARY KEY, n INT NOT NULL)",
		"INSERT INTO ge VALUES (1, 1)", "INSERT INTO ge VALUES (1, 1)", "SELECT FROM",
		"SELECT * FROM missing", "INSERT INTO ge VALUES (2, NULL)", "SELECT 1; SELECT 2")
	if _, err := db.Prepare("SELECT nonsense FROM ge WHERE id = ?"); err != nil {
		fmt.Println("prepare:", told(err))
	}
	limit, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	_, err := db.ExecContext(limit, "DO SLEEP(10)")
	fmt.Println("cancelled:", err)
	fmt.Println(db.Ping())
	other, err := sql.Open("mysql", "nobody:wrong@tcp(127.0.0.1:"+port+")/connectors")
	if err == nil {
		fmt.Println("refused:", told(other.Ping()))
	}
}

func locks() {
	first, second := open("multiStatements=true"), open("")
	execute(first, "DROP TABLE IF EXISTS gl; CREATE TABLE gl (id INT PRIMARY KEY, n INT)",
		"INSERT INTO gl VALUES (1, 0), (2, 0)")
	one, _ := first.Begin()
	two, _ := second.Begin()
	one.Exec("UPDATE gl SET n = n + 1 WHERE id = 1")
	two.Exec("UPDATE gl SET n = n + 1 WHERE id = 2")
	two.Exec("SET innodb_lock_wait_timeout = 1")
	_, err := two.Exec("UPDATE gl SET n = n + 1 WHERE id = 1")
	fmt.Println("timeout:", told(err))
	two.Exec("SET innodb_lock_wait_timeout = 30")
	var wait sync.WaitGroup
	results := make([]string, 2)
	for i, tx := range []*sql.Tx{one, two} {
		wait.Add(1)
		go func() {
			defer wait.Done()
			_, err := tx.Exec("UPDATE gl SET n = n + 1 WHERE id = ?", 2-i)
			results[i] = told(err)
			tx.Rollback()
		}()
	}
	wait.Wait()
	if results[0] > results[1] {
		results[0], results[1] = results[1], results[0]
	}
	fmt.Println("deadlock:", results)
	show(first.Query("SELECT id FROM gl ORDER BY id; SELECT n FROM gl ORDER BY id"))
}

func main() {
	port = os.Args[1]
	for _, options := range []string{"", "parseTime=true&clientFoundRows=true",
		"interpolateParams=true&parseTime=true&collation=utf8mb4_unicode_ci",
		"charset=utf8mb4&maxAllowedPacket=0&time_zone=%27%2B00%3A00%27"} {
		fmt.Println("== " + options)
		db := open(options)
		fmt.Println(db.Ping())
		values(db)
		transactions(db)
		execute(db, "UPDATE gt SET id = id")
		failures(db)
		db.Close()
	}
	fmt.Println("== locks")
	locks()
	fmt.Println("== many rows")
	db := open("")
	execute(db, "DROP TABLE IF EXISTS gm", "CREATE TABLE gm (id INT PRIMARY KEY, pad VARCHAR(200))")
	tx, _ := db.Begin()
	statement, _ := tx.Prepare("INSERT INTO gm VALUES (?, REPEAT('p', 150))")
	for id := range 2000 {
		if _, err := statement.Exec(id); err != nil {
			fmt.Println(told(err))
		}
	}
	tx.Commit()
	rows, err := db.Query("SELECT id, pad FROM gm WHERE id >= ? ORDER BY id", 100)
	count, sum := 0, 0
	for err == nil && rows.Next() {
		var id int
		var pad string
		err = rows.Scan(&id, &pad)
		count, sum = count+1, sum+id+len(pad)
	}
	fmt.Println(count, sum, err)
}
