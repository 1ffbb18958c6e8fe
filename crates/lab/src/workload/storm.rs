//! Connections that come for one statement and go: what a client without a pool does to a server.
//!
//! 1. An operation is to connect, to log in, to execute the statement and to disconnect. Nothing of
//!    it is prepared before.
//! 2. What each statement changes can be checked: `seen` and `again` of a row are equal.

use crate::client::{Connection, Failure, Target};
use crate::distribution::between;
use crate::driver::session::Session;
use crate::load::{Batch, Loading, TableForm};
use crate::workload::{self, Violation, Which, Workload};
use base::Random;
use std::time::Duration;

/// What a connection is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// Nothing.
    Nothing,
    /// One row by its key.
    Select,
    /// A change of one row by its key.
    Update,
}

impl Visit {
    /// By name.
    pub fn of_name(name: &str) -> Option<Self> {
        Some(match name {
            "nothing" => Self::Nothing,
            "select" => Self::Select,
            "update" => Self::Update,
            _ => return None,
        })
    }

    /// Its name as an operation.
    fn operation(self) -> &'static str {
        match self {
            Self::Nothing => "connect",
            Self::Select => "connect_select",
            Self::Update => "connect_update",
        }
    }
}

/// The parameters.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is done with a connection.
    pub visit: Visit,
    /// Rows of the table.
    pub table_size: u64,
    /// Decides which rows.
    pub seed: u64,
}

/// A client that cannot connect waits so long before it tries again: what is refused is an error
/// each time, not a hundred thousand a second.
const AFTER_REFUSAL: Duration = Duration::from_millis(20);

/// See the module.
pub struct Storm {
    options: Options,
}

impl Storm {
    /// With these parameters.
    pub fn new(options: Options) -> Self {
        Self { options }
    }
}

impl Workload for Storm {
    fn operations(&self) -> Vec<&'static str> {
        vec![self.options.visit.operation()]
    }

    fn statements(&self) -> Vec<String> {
        Vec::new()
    }

    fn connections(&self) -> usize {
        0
    }

    fn client(&self, which: Which) -> Box<dyn workload::Client> {
        let random = which.random(self.options.seed);
        Box::new(Client { options: self.options.clone(), random, target: None, row: 1 })
    }
}

struct Client {
    options: Options,
    random: Random,
    target: Option<Target>,
    row: u64,
}

impl Client {
    fn visit(&self, target: &Target) -> Result<(), Failure> {
        let mut connection = Connection::open(target)?;
        let row = self.row;
        match self.options.visit {
            Visit::Nothing => Ok(()),
            Visit::Select => {
                connection.command(&format!("SELECT seen FROM storm WHERE id={row}")).map(drop)
            }
            Visit::Update => {
                let sql = format!("UPDATE storm SET seen=seen+1, again=again+1 WHERE id={row}");
                connection.command(&sql).map(drop)
            }
        }
    }
}

impl workload::Client for Client {
    fn told(&mut self, target: &Target) {
        self.target = Some(target.clone());
    }

    fn decided(&self) -> String {
        self.row.to_string()
    }

    fn next(&mut self) -> usize {
        self.row = between(&mut self.random, 1, self.options.table_size);
        0
    }

    fn perform(&mut self, _sessions: &mut [Session]) -> Result<(), Failure> {
        let Some(target) = &self.target else { return Ok(()) };
        let visited = self.visit(target);
        if visited.is_err() {
            runtime::sleep(AFTER_REFUSAL);
        }
        visited
    }
}

/// The table that is visited.
pub struct Load {
    options: Options,
    form: TableForm,
}

impl Load {
    /// For these parameters.
    pub fn new(options: Options, form: TableForm) -> Self {
        Self { options, form }
    }
}

impl Loading for Load {
    fn description(&self) -> String {
        format!("storm table_size={} {}", self.options.table_size, self.form)
    }

    fn begin(&self) -> Vec<String> {
        vec![
            "DROP TABLE IF EXISTS storm".into(),
            format!(
                "CREATE TABLE storm (id INT NOT NULL, seen BIGINT NOT NULL, again BIGINT NOT NULL, \
                 PRIMARY KEY (id)) {}",
                self.form.behind("id")
            ),
        ]
    }

    fn jobs(&self) -> u64 {
        1
    }

    fn job(&self, _job: u64, batch: &mut Batch<'_>) -> Result<(), Failure> {
        for id in 1..=self.options.table_size {
            let values = [id.into(), 0u64.into(), 0u64.into()];
            batch.row("INSERT INTO storm (id, seen, again)", &values)?;
        }
        Ok(())
    }
}

/// Rows that are missing or half changed.
pub fn verify(connection: &mut Connection, options: &Options) -> Result<Vec<Violation>, Failure> {
    let size = options.table_size;
    let rows = format!(
        "SELECT COUNT(*), MIN(id), MAX(id) FROM storm \
         HAVING COUNT(*)<>{size} OR MIN(id)<>1 OR MAX(id)<>{size}"
    );
    let halves = "SELECT id, seen, again FROM storm WHERE seen<>again OR seen<0";
    let mut violations = Vec::new();
    let rule = "every row of the load is there once, and no other";
    violations.extend(Violation::check(connection, rule, &rows)?);
    violations.extend(Violation::check(connection, "changes are whole", halves)?);
    Ok(violations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_are_visited_as_the_seed_says() {
        let options = Options { visit: Visit::Select, table_size: 10, seed: 1 };
        let rows = |number| {
            let mut client = Storm::new(options.clone()).client(Which { number, turn: 0 });
            let row = |_| {
                client.next();
                client.decided()
            };
            (0..500).map(row).collect::<Vec<_>>()
        };
        assert_eq!(rows(1), rows(1));
        assert_ne!(rows(1), rows(2));
        for row in 1..=10u64 {
            let visits = rows(0).iter().filter(|visited| **visited == row.to_string()).count();
            assert!((25..75).contains(&visits), "row {row}: {visits}");
        }
    }
}
