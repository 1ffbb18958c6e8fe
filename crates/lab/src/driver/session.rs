//! A connection of a client, with the workload's statements.

use crate::client::{Connection, Done, Failure, Handle, Prepared, Row, Target, Value};
use crate::results::Statements;
use std::sync::Arc;

/// How statements with values are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// As text, values written into it.
    Text,
    /// Prepared once per connection, executed with values.
    Prepared,
}

/// What is known of one of the workload's statements on this connection.
enum Form {
    Unknown,
    Prepared(Prepared),
    /// The server prepares no statements of its kind: it is sent as text.
    Text,
}

/// The error of a server that does not prepare statements of a kind.
const NOT_PREPARED: u16 = 1295;

/// See the module.
pub struct Session {
    connection: Connection,
    statements: Arc<[String]>,
    forms: Vec<Form>,
    sent: Statements,
}

/// Counts a statement by its first word.
fn count(sent: &mut Statements, sql: &str) {
    const READS: [&str; 3] = ["SELECT", "SHOW", "WITH"];
    const WRITES: [&str; 6] = ["INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "TRUNCATE"];
    let begins = |words: &[&str]| {
        words.iter().any(|word| {
            sql.as_bytes()
                .get(..word.len())
                .is_some_and(|b| b.eq_ignore_ascii_case(word.as_bytes()))
        })
    };
    match () {
        () if begins(&READS) => sent.reads += 1,
        () if begins(&WRITES) => sent.writes += 1,
        () => sent.others += 1,
    }
}

impl Session {
    /// Connects; statements are prepared when they are first executed.
    pub fn open(
        target: &Target,
        statements: &Arc<[String]>,
        protocol: Protocol,
    ) -> Result<Self, Failure> {
        Self::over(Connection::open(target)?, statements, protocol)
    }

    /// The same with [`Connection::open_holding`].
    pub fn open_holding(
        target: &Target,
        statements: &Arc<[String]>,
        protocol: Protocol,
    ) -> Result<Self, Failure> {
        Self::over(Connection::open_holding(target)?, statements, protocol)
    }

    fn over(
        mut connection: Connection,
        statements: &Arc<[String]>,
        protocol: Protocol,
    ) -> Result<Self, Failure> {
        // The driver looks after clients that wait for too long, with one timer for all.
        connection.wait_for_ever();
        let forms = statements.iter().map(|_| match protocol {
            Protocol::Text => Form::Text,
            Protocol::Prepared => Form::Unknown,
        });
        let forms = forms.collect();
        let sent = Statements::default();
        Ok(Self { connection, statements: statements.clone(), forms, sent })
    }

    /// What was sent since the last call.
    pub fn take_sent(&mut self) -> Statements {
        std::mem::take(&mut self.sent)
    }

    /// Closes the connection from elsewhere.
    pub fn handle(&self) -> Handle {
        self.connection.handle()
    }

    /// Executes one of the workload's statements.
    pub fn execute(
        &mut self,
        statement: usize,
        values: &[Value<'_>],
        each: impl FnMut(&Row<'_>) -> Result<(), Failure>,
    ) -> Result<Done, Failure> {
        let sql = &self.statements[statement];
        count(&mut self.sent, sql);
        let form = &mut self.forms[statement];
        if let Form::Unknown = form {
            *form = match self.connection.prepare(sql) {
                Ok(prepared) => Form::Prepared(prepared),
                Err(Failure::Server { number: NOT_PREPARED, .. }) => Form::Text,
                Err(failure) => return Err(failure),
            };
        }
        match form {
            Form::Prepared(prepared) => self.connection.execute(prepared, values, each),
            Form::Text | Form::Unknown => self.connection.execute_text(sql, values, each),
        }
    }

    /// Executes one whose rows are read and not looked at.
    pub fn run(&mut self, statement: usize, values: &[Value<'_>]) -> Result<Done, Failure> {
        self.execute(statement, values, |_| Ok(()))
    }

    /// Executes a text as it is.
    pub fn command(&mut self, sql: &str) -> Result<Done, Failure> {
        count(&mut self.sent, sql);
        self.connection.command(sql)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_counted_by_what_they_do() {
        let mut sent = Statements::default();
        let texts =
            ["SELECT 1", "select 1", "update t set a=1", "BEGIN", "COMMIT", "INS", "REPLACE"];
        texts.iter().for_each(|sql| count(&mut sent, sql));
        assert_eq!(sent, Statements { reads: 2, writes: 2, others: 3 });
        assert_eq!(sent.total(), 7);
    }
}
