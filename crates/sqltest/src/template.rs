//! Statements with places for generated values, and sysbench's tables to run them on.
//!
//! `{id}` and `{id+99}` are one random id of the row and so much more, `{k}` a random number,
//! `{next}` counts executions, `{c}` and `{pad}` are sysbench's texts, `{table}` is a number that
//! the caller fixes.

use crate::client::Connection;
use std::io;

/// Length of sysbench's `c` and `pad`.
const C_BYTES: usize = 119;
const PAD_BYTES: usize = 59;
/// Rows in one INSERT of [`fill`].
const BATCH_ROWS: u32 = 500;

/// What is put in.
#[derive(Clone, Copy)]
enum Value {
    Id(u32),
    K,
    Next,
    Text(usize),
}

/// A statement cut at its values.
#[derive(Clone)]
pub struct Template {
    pieces: Vec<String>,
    values: Vec<Value>,
}

impl Template {
    /// Reads a statement; `None` if a `{...}` is not one of those above.
    pub fn parse(sql: &str, table: u32) -> Option<Self> {
        let sql = sql.replace("{table}", &table.to_string());
        let mut template = Self { pieces: Vec::new(), values: Vec::new() };
        let mut rest = sql.as_str();
        while let Some((before, behind)) = rest.split_once('{') {
            let (word, behind) = behind.split_once('}')?;
            template.pieces.push(before.to_string());
            template.values.push(match word {
                "id" => Value::Id(0),
                "k" => Value::K,
                "next" => Value::Next,
                "c" => Value::Text(C_BYTES),
                "pad" => Value::Text(PAD_BYTES),
                _ => Value::Id(word.strip_prefix("id+")?.parse().ok()?),
            });
            rest = behind;
        }
        template.pieces.push(rest.to_string());
        Some(template)
    }

    /// The text to prepare.
    pub fn to_prepare(&self) -> String {
        self.pieces.join("?")
    }

    /// Appends the statement with values.
    pub fn put_text(&self, out: &mut Vec<u8>, values: &mut Values) {
        out.extend_from_slice(self.pieces[0].as_bytes());
        for (value, piece) in self.values.iter().zip(&self.pieces[1..]) {
            match value {
                Value::Text(length) => {
                    out.push(b'\'');
                    values.random.put_text(*length, out);
                    out.push(b'\'');
                }
                value => put_digits(values.number(*value), out),
            }
            out.extend_from_slice(piece.as_bytes());
        }
    }

    /// Appends the body of COM_STMT_EXECUTE; the types of the values go with the first one only.
    pub fn put_execute(
        &self,
        statement: u32,
        with_types: bool,
        out: &mut Vec<u8>,
        values: &mut Values,
    ) {
        out.extend_from_slice(&statement.to_le_bytes());
        out.extend_from_slice(&[0, 1, 0, 0, 0]);
        if !self.values.is_empty() {
            out.resize(out.len() + self.values.len().div_ceil(8), 0);
            out.push(u8::from(with_types));
            for value in self.values.iter().filter(|_| with_types) {
                let is_text = matches!(value, Value::Text(_));
                out.extend_from_slice(if is_text { &[0xfd, 0] } else { &[3, 0] });
            }
        }
        for value in &self.values {
            match value {
                Value::Text(length) => {
                    out.push(*length as u8);
                    values.random.put_text(*length, out);
                }
                value => out.extend_from_slice(&values.number(*value).to_le_bytes()),
            }
        }
    }
}

fn put_digits(number: u32, out: &mut Vec<u8>) {
    let start = out.len();
    let mut rest = number;
    loop {
        out.push(b'0' + (rest % 10) as u8);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out[start..].reverse();
}

/// Where values come from: the same ones at every run.
pub struct Values {
    random: Random,
    rows: u32,
    id: u32,
    next: u32,
}

impl Values {
    /// For tables of so many rows.
    pub fn new(seed: u64, rows: u32) -> Self {
        Self { random: Random::new(seed), rows, id: 1, next: 0 }
    }

    /// The next execution begins.
    pub fn advance(&mut self) {
        self.id = self.random.below(self.rows.saturating_sub(100).max(1)) + 1;
        self.next += 1;
    }

    fn number(&mut self, value: Value) -> u32 {
        match value {
            Value::Id(more) => self.id + more,
            Value::Next => self.next,
            Value::K | Value::Text(_) => self.random.below(self.rows) + 1,
        }
    }
}

/// A small generator of numbers (Marsaglia's xorshift64).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self((0x9e37_79b9_7f4a_7c15 ^ seed).max(1))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u32) -> u32 {
        (((self.next() >> 32) * u64::from(limit)) >> 32) as u32
    }

    /// Groups of digits with dashes between, as sysbench writes them.
    fn put_text(&mut self, length: usize, out: &mut Vec<u8>) {
        for place in 0..length {
            let digit = b'0' + self.below(10) as u8;
            out.push(if place % 12 == 11 { b'-' } else { digit });
        }
    }
}

/// Creates the database `sbtest` with sysbench's tables and fills them.
pub fn fill(connection: &mut Connection, tables: u32, rows: u32) -> io::Result<()> {
    connection.execute("CREATE DATABASE sbtest")?;
    connection.execute("USE sbtest")?;
    for table in 1..=tables {
        connection.execute(&format!(
            "CREATE TABLE sbtest{table} (id INT NOT NULL AUTO_INCREMENT, k INT NOT NULL DEFAULT 0, \
             c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id))"
        ))?;
        let mut values = Values::new(u64::from(table), rows);
        for first in (1..=rows).step_by(BATCH_ROWS as usize) {
            let mut sql = format!("INSERT INTO sbtest{table} VALUES").into_bytes();
            for id in first..(first + BATCH_ROWS).min(rows + 1) {
                sql.extend_from_slice(if id == first { b" (" } else { b",(" });
                put_digits(id, &mut sql);
                sql.push(b',');
                put_digits(values.number(Value::K), &mut sql);
                for length in [C_BYTES, PAD_BYTES] {
                    sql.extend_from_slice(b",'");
                    values.random.put_text(length, &mut sql);
                    sql.push(b'\'');
                }
                sql.push(b')');
            }
            connection.execute(&String::from_utf8_lossy(&sql))?;
        }
        connection.execute(&format!("CREATE INDEX k_{table} ON sbtest{table} (k)"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_put_in() {
        let sql = "SELECT c FROM sbtest{table} WHERE id BETWEEN {id} AND {id+99}";
        let template = Template::parse(sql, 7).unwrap();
        assert_eq!(template.to_prepare(), "SELECT c FROM sbtest7 WHERE id BETWEEN ? AND ?");
        let mut values = Values::new(1, 1000);
        values.advance();
        let (id, mut text) = (values.id, Vec::new());
        template.put_text(&mut text, &mut values);
        let wanted = format!("SELECT c FROM sbtest7 WHERE id BETWEEN {id} AND {}", id + 99);
        assert_eq!(String::from_utf8(text).unwrap(), wanted);
        let mut body = Vec::new();
        template.put_execute(5, true, &mut body, &mut values);
        assert_eq!(body[..16], [5, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 0, 3, 0, id as u8]);
        assert!(Template::parse("SELECT {nothing}", 1).is_none());
    }
}
