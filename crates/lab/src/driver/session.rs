//! A connection of a client, with the workload's statements.

use crate::client::{Connection, Done, Failure, Prepared, Row, Target, Value};
use std::sync::Arc;

/// How statements with values are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// As text, values written into it.
    Text,
    /// Prepared once per connection, executed with values.
    Prepared,
}

/// See the module.
pub struct Session {
    connection: Connection,
    statements: Arc<[String]>,
    prepared: Vec<Option<Prepared>>,
    protocol: Protocol,
}

impl Session {
    /// Connects; statements are prepared when they are first executed.
    pub fn open(
        target: &Target,
        statements: &Arc<[String]>,
        protocol: Protocol,
    ) -> Result<Self, Failure> {
        let connection = Connection::open(target)?;
        let prepared = vec![None; statements.len()];
        Ok(Self { connection, statements: statements.clone(), prepared, protocol })
    }

    /// Executes one of the workload's statements.
    pub fn execute(
        &mut self,
        statement: usize,
        values: &[Value<'_>],
        each: impl FnMut(&Row<'_>) -> Result<(), Failure>,
    ) -> Result<Done, Failure> {
        let sql = &self.statements[statement];
        if self.protocol == Protocol::Text {
            return self.connection.execute_text(sql, values, each);
        }
        let handle = match self.prepared[statement] {
            Some(handle) => handle,
            None => *self.prepared[statement].insert(self.connection.prepare(sql)?),
        };
        self.connection.execute(handle, values, each)
    }

    /// Executes one whose rows are read and not looked at.
    pub fn run(&mut self, statement: usize, values: &[Value<'_>]) -> Result<Done, Failure> {
        self.execute(statement, values, |_| Ok(()))
    }

    /// Executes a text as it is.
    pub fn command(&mut self, sql: &str) -> Result<Done, Failure> {
        self.connection.command(sql)
    }
}
