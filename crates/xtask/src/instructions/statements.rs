//! The statements of `docs/instructions.tsv`, and a client that executes one of them.

use sqltest::client::{Answer, Connection, Options};
use sqltest::template::{Template, Values};
use std::io;

const SEED: u64 = 7;

/// One row of the file.
pub struct Statement {
    /// Name, with the protocol behind a dot.
    pub name: String,
    is_prepared: bool,
    /// Instructions per execution when last blessed; 0: never.
    pub instructions: f64,
    /// Statements executed one after the other.
    parts: Vec<Template>,
}

/// Reads the file: name, protocol, instructions, statement; lines with `#` are for readers.
pub fn parse(text: &str) -> Result<Vec<Statement>, String> {
    text.lines().filter(|line| !line.starts_with('#')).map(parse_line).collect()
}

fn parse_line(line: &str) -> Result<Statement, String> {
    let bad = || format!("a row of statements is not understood: {line}");
    let [name, protocol, instructions, sql] =
        line.split('\t').collect::<Vec<_>>().try_into().map_err(|_| bad())?;
    let parts: Option<Vec<Template>> = sql.split("; ").map(|s| Template::parse(s, 1)).collect();
    Ok(Statement {
        name: format!("{name}.{protocol}"),
        is_prepared: protocol == "prepared",
        instructions: instructions.parse().map_err(|_| bad())?,
        parts: parts.ok_or_else(bad)?,
    })
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

/// A connection that executes one statement again and again.
pub struct Client<'a> {
    connection: Connection,
    statement: &'a Statement,
    /// Numbers of the prepared statements, and whether the types of their values are known.
    prepared: Vec<(u32, bool)>,
    values: Values,
}

impl<'a> Client<'a> {
    /// Connects, reads every table named so that its pages are in memory, prepares.
    pub fn open(port: u16, statement: &'a Statement, rows: u32) -> io::Result<Self> {
        let options = Options { database: "sbtest".into(), ..Options::local(port) };
        let mut connection = Connection::open(&options)?;
        let mut prepared = Vec::new();
        for part in &statement.parts {
            let sql = part.to_prepare();
            if let Some(table) = sql.split([' ', '(']).find(|word| word.starts_with("sbtest")) {
                connection.execute(&format!("SELECT SUM(LENGTH(c)) FROM {table}"))?;
                connection.execute(&format!("SELECT SUM(k) FROM {table} WHERE k > 0"))?;
            }
            if statement.is_prepared {
                let answer = connection.prepare(&sql)?;
                prepared.push((answer.map_err(|e| io::Error::other(e.message))?.id, false));
            }
        }
        Ok(Self { connection, statement, prepared, values: Values::new(SEED, rows) })
    }

    /// Executes the statement so many times; every answer must be one without an error.
    pub fn execute(&mut self, times: u32) -> io::Result<()> {
        let mut body = Vec::new();
        for _ in 0..times {
            self.values.advance();
            for (number, part) in self.statement.parts.iter().enumerate() {
                body.clear();
                if let Some((id, are_types_known)) = self.prepared.get_mut(number) {
                    let with_types = !std::mem::replace(are_types_known, true);
                    part.put_execute(*id, with_types, &mut body, &mut self.values);
                    self.connection.command(0x17, &body)?;
                } else {
                    part.put_text(&mut body, &mut self.values);
                    self.connection.command(3, &body)?;
                }
                let (answer, _) = self.connection.read_answer(self.statement.is_prepared)?;
                if let Answer::Error(error) = answer {
                    return Err(io::Error::other(format!("{} {}", error.code, error.message)));
                }
            }
        }
        Ok(())
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
        assert_eq!((rows[1].parts.len(), rows[1].is_prepared), (2, true));
        rows[1].instructions = 1234.4;
        assert_eq!(bless(text, &rows), text.replace("\t0\t", "\t1234\t"));
        assert!(parse("a\tb\n").is_err());
    }
}
