//! The statements of `docs/instructions.tsv`, and a client that executes one of them.

use sqltest::client::{Answer, Connection, Options};
use std::io;

/// Length of sysbench's `c` and `pad`.
const C_BYTES: usize = 119;
const PAD_BYTES: usize = 59;

/// One row of the file.
pub struct Statement {
    /// Name, with the protocol behind a dot.
    pub name: String,
    /// `prepared` or `text`.
    is_prepared: bool,
    /// Instructions per execution when last blessed; 0: never.
    pub instructions: f64,
    /// Statements executed one after the other, with `{...}` where values stand.
    parts: Vec<Part>,
}

/// A statement cut at its values.
struct Part {
    pieces: Vec<String>,
    values: Vec<Value>,
}

/// What is put in.
#[derive(Clone, Copy)]
enum Value {
    /// `{id}`, `{id+99}`: one random id for the whole row, and so much more.
    Id(u32),
    /// `{k}`: a random number.
    K,
    /// `{next}`: 1, 2, 3...
    Next,
    /// `{c}`, `{pad}`: digits and dashes.
    Text(usize),
}

/// Reads the file: name, protocol, instructions, statement; lines with `#` are for readers.
pub fn parse(text: &str) -> Result<Vec<Statement>, String> {
    text.lines().filter(|line| !line.starts_with('#')).map(parse_line).collect()
}

fn parse_line(line: &str) -> Result<Statement, String> {
    let bad = || format!("a row of statements is not understood: {line}");
    let [name, protocol, instructions, sql] =
        line.split('\t').collect::<Vec<_>>().try_into().map_err(|_| bad())?;
    let parts: Option<Vec<Part>> = sql.split("; ").map(parse_part).collect();
    Ok(Statement {
        name: format!("{name}.{protocol}"),
        is_prepared: protocol == "prepared",
        instructions: instructions.parse().map_err(|_| bad())?,
        parts: parts.ok_or_else(bad)?,
    })
}

fn parse_part(sql: &str) -> Option<Part> {
    let mut part = Part { pieces: Vec::new(), values: Vec::new() };
    let mut rest = sql;
    while let Some((before, behind)) = rest.split_once('{') {
        let (word, behind) = behind.split_once('}')?;
        part.pieces.push(before.to_string());
        part.values.push(match word {
            "id" => Value::Id(0),
            "k" => Value::K,
            "next" => Value::Next,
            "c" => Value::Text(C_BYTES),
            "pad" => Value::Text(PAD_BYTES),
            _ => Value::Id(word.strip_prefix("id+")?.parse().ok()?),
        });
        rest = behind;
    }
    part.pieces.push(rest.to_string());
    Some(part)
}

/// The file's text with new figures.
pub fn bless(text: &str, statements: &[Statement]) -> String {
    let mut out = String::new();
    let mut rows = statements.iter();
    for line in text.lines() {
        let mut cells: Vec<String> = line.split('\t').map(str::to_string).collect();
        if !line.starts_with('#')
            && let Some(statement) = rows.next()
        {
            cells[2] = format!("{:.0}", statement.instructions);
        }
        out.push_str(&cells.join("\t"));
        out.push('\n');
    }
    out
}

/// A small generator of numbers (xorshift64), the same ones at every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Groups of digits with dashes between, as sysbench writes them.
    fn text(&mut self, length: usize) -> Vec<u8> {
        let digit =
            |k: usize, random: u64| if k % 12 == 11 { b'-' } else { b'0' + (random % 10) as u8 };
        (0..length).map(|k| digit(k, self.next() >> 20)).collect()
    }
}

/// Creates sysbench's tables and fills them.
pub fn fill(connection: &mut Connection, tables: u32, rows: u32) -> io::Result<()> {
    connection.execute("CREATE DATABASE sbtest")?;
    connection.execute("USE sbtest")?;
    for table in 1..=tables {
        let mut random = Random(0x9e37_79b9_7f4a_7c15 + u64::from(table));
        connection.execute(&format!(
            "CREATE TABLE sbtest{table} (id INT NOT NULL AUTO_INCREMENT, k INT NOT NULL DEFAULT 0, \
             c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id))"
        ))?;
        for first in (1..=rows).step_by(500) {
            let mut sql = format!("INSERT INTO sbtest{table} VALUES");
            for id in first..(first + 500).min(rows + 1) {
                let comma = if id == first { ' ' } else { ',' };
                let (c, pad) = (random.text(C_BYTES), random.text(PAD_BYTES));
                let (c, pad) = (String::from_utf8_lossy(&c), String::from_utf8_lossy(&pad));
                let k = random.next() % u64::from(rows) + 1;
                sql.push_str(&format!("{comma}({id},{k},'{c}','{pad}')"));
            }
            connection.execute(&sql)?;
        }
        connection.execute(&format!("CREATE INDEX k_{table} ON sbtest{table} (k)"))?;
    }
    Ok(())
}

/// A connection that executes one statement again and again.
pub struct Client<'a> {
    connection: Connection,
    statement: &'a Statement,
    /// Numbers of the prepared statements, and whether the types of their values are known.
    prepared: Vec<(u32, bool)>,
    random: Random,
    rows: u32,
    next: u32,
}

impl<'a> Client<'a> {
    /// Connects, reads every table named so that its pages are in memory, prepares.
    pub fn open(port: u16, statement: &'a Statement, rows: u32) -> io::Result<Self> {
        let options = Options { database: "sbtest".into(), ..Options::local(port) };
        let mut connection = Connection::open(&options)?;
        let mut prepared = Vec::new();
        for part in &statement.parts {
            let sql = part.pieces.join("?");
            if let Some(table) = sql.split([' ', '(']).find(|word| word.starts_with("sbtest")) {
                connection.execute(&format!("SELECT SUM(LENGTH(c)) FROM {table}"))?;
                connection.execute(&format!("SELECT SUM(k) FROM {table} WHERE k > 0"))?;
            }
            if statement.is_prepared {
                let answer = connection.prepare(&sql)?;
                prepared.push((answer.map_err(|e| io::Error::other(e.message))?.id, false));
            }
        }
        let random = Random(0x2545_f491_4f6c_dd1d);
        Ok(Self { connection, statement, prepared, random, rows, next: 0 })
    }

    /// Executes the statement so many times; every answer must be one without an error.
    pub fn execute(&mut self, times: u32) -> io::Result<()> {
        for _ in 0..times {
            let id = (self.random.next() % u64::from(self.rows - 100)) as u32 + 1;
            self.next += 1;
            for number in 0..self.statement.parts.len() {
                if self.statement.is_prepared {
                    self.send_execute(number, id)?;
                } else {
                    self.send_text(number, id)?;
                }
                let (answer, _) = self.connection.read_answer(self.statement.is_prepared)?;
                if let Answer::Error(error) = answer {
                    return Err(io::Error::other(format!("{} {}", error.code, error.message)));
                }
            }
        }
        Ok(())
    }

    fn number(&mut self, value: Value, id: u32) -> u32 {
        match value {
            Value::Id(more) => id + more,
            Value::Next => self.next,
            Value::K | Value::Text(_) => (self.random.next() % u64::from(self.rows)) as u32 + 1,
        }
    }

    fn send_text(&mut self, number: usize, id: u32) -> io::Result<()> {
        let part = &self.statement.parts[number];
        let mut sql = part.pieces[0].clone().into_bytes();
        for (value, piece) in part.values.iter().zip(&part.pieces[1..]) {
            match value {
                Value::Text(length) => {
                    sql.push(b'\'');
                    sql.extend_from_slice(&self.random.text(*length));
                    sql.push(b'\'');
                }
                value => sql.extend_from_slice(self.number(*value, id).to_string().as_bytes()),
            }
            sql.extend_from_slice(piece.as_bytes());
        }
        self.connection.command(3, &sql)
    }

    /// COM_STMT_EXECUTE; the types of the values go with the first one only.
    fn send_execute(&mut self, number: usize, id: u32) -> io::Result<()> {
        let part = &self.statement.parts[number];
        let (statement, are_types_known) = self.prepared[number];
        let mut body = statement.to_le_bytes().to_vec();
        body.extend_from_slice(&[0, 1, 0, 0, 0]);
        if !part.values.is_empty() {
            body.extend(vec![0; part.values.len().div_ceil(8)]);
            body.push(u8::from(!are_types_known));
            for value in part.values.iter().filter(|_| !are_types_known) {
                let is_text = matches!(value, Value::Text(_));
                body.extend_from_slice(if is_text { &[0xfd, 0] } else { &[3, 0] });
            }
        }
        for value in &part.values {
            match value {
                Value::Text(length) => {
                    body.push(*length as u8);
                    body.extend_from_slice(&self.random.text(*length));
                }
                value => body.extend_from_slice(&self.number(*value, id).to_le_bytes()),
            }
        }
        self.prepared[number].1 = true;
        self.connection.command(0x17, &body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_rows_and_blesses_them() {
        let text = "# name\tprotocol\tinstructions\tstatement\n\
                    a\ttext\t100\tSELECT c FROM sbtest1 WHERE id BETWEEN {id} AND {id+99}\n\
                    b\tprepared\t0\tBEGIN; COMMIT\n";
        let mut rows = parse(text).unwrap();
        assert_eq!(rows[0].parts[0].pieces.len(), 3);
        assert_eq!((rows[1].parts.len(), rows[1].is_prepared), (2, true));
        rows[1].instructions = 1234.4;
        assert_eq!(bless(text, &rows), text.replace("\t0\t", "\t1234\t"));
        assert!(parse("a\tb\n").is_err());
    }
}
