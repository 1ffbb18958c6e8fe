//! A client of one of the scripts.

use super::load::{CONSTANT_C, put_c, put_pad};
use super::statements::{BEGIN, COMMIT, RANDOM_VALUES, Statement, Statements};
use super::{Options, Script, Version};
use crate::client::{Failure, Value};
use crate::distribution::access::Access;
use crate::distribution::between;
use crate::driver::session::Session;
use crate::workload::{self, Which};
use base::Random;
use std::ops::Range;

/// Values that one statement has at most.
const VALUES_MAX: usize = 2 * RANDOM_VALUES;
/// The other constant of 0.4, in rows that were deleted and inserted again.
const CONSTANT_PAD: &str = "aaaaaaaaaaffffffffffrrrrrrrrrreeeeeeeeeeyyyyyyyyyy";
/// Width of a range of `k`.
const RANDOM_RANGE: u64 = 5;

/// A value that was drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Argument {
    Integer(i64),
    /// Where it lies in the text.
    Text(Range<usize>),
}

/// A statement that was decided, and how many arguments are its own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    statement: usize,
    arguments: usize,
}

/// See the module.
pub(super) struct Client {
    options: Options,
    statements: Statements,
    access: Access,
    random: Random,
    is_transaction: bool,
    /// Of the whole transaction, where it is drawn once.
    table: u32,
    steps: Vec<Step>,
    arguments: Vec<Argument>,
    text: Vec<u8>,
}

impl Client {
    pub(super) fn new(options: Options, access: Access, which: Which) -> Self {
        let writes_or_reads_more =
            matches!(options.script, Script::ReadOnly | Script::ReadWrite | Script::WriteOnly);
        Self {
            statements: Statements { tables: options.tables, version: options.version },
            is_transaction: writes_or_reads_more && !options.skip_transaction,
            random: which.random(options.seed),
            options,
            access,
            table: 1,
            steps: Vec::new(),
            arguments: Vec::new(),
            text: Vec::new(),
        }
    }

    fn draw_table(&mut self) -> u32 {
        between(&mut self.random, 1, u64::from(self.options.tables)) as u32
    }

    fn table(&mut self) -> u32 {
        if self.options.version == Version::V10 { self.draw_table() } else { self.table }
    }

    fn id(&mut self) -> i64 {
        self.access.draw(&mut self.random) as i64
    }

    fn step(&mut self, kind: Statement, table: u32, arguments: impl IntoIterator<Item = Argument>) {
        let before = self.arguments.len();
        self.arguments.extend(arguments);
        let arguments = self.arguments.len() - before;
        self.steps.push(Step { statement: self.statements.number(kind, table), arguments });
    }

    fn with_id(&mut self, kind: Statement) {
        let (table, id) = (self.table(), self.id());
        self.step(kind, table, [Argument::Integer(id)]);
    }

    fn range(&mut self, kind: Statement) {
        let (table, mut id) = (self.table(), self.id());
        if self.options.version == Version::V04 {
            let first_of_last = self.options.table_size as i64 - self.options.range_size as i64 + 1;
            id = id.min(first_of_last.max(1));
        }
        let last = id + self.options.range_size as i64 - 1;
        self.step(kind, table, [Argument::Integer(id), Argument::Integer(last)]);
    }

    fn c(&mut self) -> Argument {
        let begin = self.text.len();
        put_c(&mut self.text, &mut self.random);
        Argument::Text(begin..self.text.len())
    }

    fn pad(&mut self) -> Argument {
        let begin = self.text.len();
        put_pad(&mut self.text, &mut self.random);
        Argument::Text(begin..self.text.len())
    }

    fn constant(&mut self, text: &str) -> Argument {
        let begin = self.text.len();
        self.text.extend_from_slice(text.as_bytes());
        Argument::Text(begin..self.text.len())
    }

    fn update_non_index(&mut self) {
        let (table, c, id) = (self.table(), self.c(), self.id());
        self.step(Statement::UpdateNonIndex, table, [c, Argument::Integer(id)]);
    }

    fn delete_and_insert(&mut self) {
        let (table, id, k) = (self.table(), self.id(), self.id());
        self.step(Statement::Delete, table, [Argument::Integer(id)]);
        let (k, c, pad) = match self.options.version {
            Version::V04 => (0, self.constant(CONSTANT_C), self.constant(CONSTANT_PAD)),
            Version::V05 | Version::V10 => (k, self.c(), self.pad()),
        };
        let row = [Argument::Integer(id), Argument::Integer(k), c, pad];
        self.step(Statement::Insert, table, row);
    }

    fn insert_new(&mut self) {
        let (table, k, c, pad) = (self.table(), self.id(), self.c(), self.pad());
        self.step(Statement::InsertNew, table, [Argument::Integer(k), c, pad]);
    }

    fn random_points(&mut self) {
        let table = self.table();
        let ids = [(); RANDOM_VALUES].map(|()| Argument::Integer(self.id()));
        self.step(Statement::RandomPoints, table, ids);
    }

    fn random_ranges(&mut self) {
        let table = self.table();
        let ids = [(); RANDOM_VALUES].map(|()| self.id());
        let ends = ids.into_iter().flat_map(|id| [id, id + RANDOM_RANGE as i64]);
        self.step(Statement::RandomRanges, table, ends.map(Argument::Integer));
    }

    fn reads(&mut self) {
        for _ in 0..self.options.point_selects {
            self.with_id(Statement::PointSelect);
        }
        let ranges = [
            Statement::SimpleRange,
            Statement::SumRange,
            Statement::OrderRange,
            Statement::DistinctRange,
        ];
        for kind in ranges {
            (0..self.options.ranges_each).for_each(|_| self.range(kind));
        }
    }

    fn writes(&mut self) {
        (0..self.options.index_updates).for_each(|_| self.with_id(Statement::UpdateIndex));
        (0..self.options.non_index_updates).for_each(|_| self.update_non_index());
        (0..self.options.delete_inserts).for_each(|_| self.delete_and_insert());
    }

    /// Sends a step.
    fn send(
        &self,
        step: &Step,
        arguments: &[Argument],
        session: &mut Session,
    ) -> Result<(), Failure> {
        let mut values = [Value::Null; VALUES_MAX];
        for (value, argument) in values.iter_mut().zip(arguments) {
            *value = match argument {
                Argument::Integer(number) => Value::Integer(*number),
                Argument::Text(range) => Value::Bytes(&self.text[range.clone()]),
            };
        }
        session.run(step.statement, &values[..arguments.len()]).map(drop)
    }
}

impl workload::Client for Client {
    fn decided(&self) -> String {
        let text = String::from_utf8_lossy(&self.text);
        format!("{:?} {:?} {text}", self.steps, self.arguments)
    }

    fn next(&mut self) -> usize {
        self.steps.clear();
        self.arguments.clear();
        self.text.clear();
        if self.options.version != Version::V10 {
            self.table = self.draw_table();
        }
        match self.options.script {
            Script::ReadOnly => self.reads(),
            Script::ReadWrite => {
                self.reads();
                self.writes();
            }
            Script::WriteOnly => self.writes(),
            Script::PointSelect => self.with_id(Statement::PointSelect),
            Script::UpdateIndex => self.with_id(Statement::UpdateIndex),
            Script::UpdateNonIndex => self.update_non_index(),
            Script::Insert => self.insert_new(),
            Script::Delete => self.with_id(Statement::Delete),
            Script::RandomPoints => self.random_points(),
            Script::RandomRanges => self.random_ranges(),
            // Its clients are of another kind.
            Script::BulkInsert => {}
        }
        0
    }

    fn perform(&mut self, sessions: &mut [Session]) -> Result<(), Failure> {
        let session = &mut sessions[0];
        if self.is_transaction {
            session.run(BEGIN, &[])?;
        }
        let mut arguments = self.arguments.as_slice();
        for step in &self.steps {
            let (own, rest) = arguments.split_at(step.arguments);
            self.send(step, own, session)?;
            arguments = rest;
        }
        if self.is_transaction {
            session.run(COMMIT, &[])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::access::Kind;
    use crate::workload::Client as _;

    fn client(script: Script, which: Which) -> Client {
        let options = Options { tables: 8, table_size: 1000, ..Options::new(script) };
        Client::new(options, Access::new(Kind::Uniform, 1, 1000), which)
    }

    #[test]
    fn transactions_have_sysbenchs_numbers_of_statements() {
        let counts = [
            (Script::ReadOnly, 14),
            (Script::ReadWrite, 18),
            (Script::WriteOnly, 4),
            (Script::PointSelect, 1),
            (Script::Insert, 1),
        ];
        for (script, wanted) in counts {
            let mut client = client(script, Which::default());
            client.next();
            assert_eq!(client.steps.len(), wanted, "{script:?} without BEGIN and COMMIT");
        }
    }

    #[test]
    fn a_seed_a_number_and_a_turn_decide_what_a_client_asks() {
        let asked = |number, turn| {
            let mut client = client(Script::ReadWrite, Which { number, turn });
            (0..50)
                .map(|_| {
                    client.next();
                    (client.steps.clone(), client.arguments.clone(), client.text.clone())
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(asked(3, 1), asked(3, 1));
        assert_ne!(asked(3, 1), asked(4, 1));
        assert_ne!(asked(3, 1), asked(3, 2));
    }

    #[test]
    fn a_transaction_of_0_5_has_one_table_and_ranges_of_0_4_are_whole() {
        let of = |version, tables| {
            let options = Options {
                tables,
                table_size: 1000,
                range_size: 900,
                version,
                ..Options::new(Script::ReadWrite)
            };
            Client::new(options, Access::new(Kind::Uniform, 1, 1000), Which { number: 7, turn: 0 })
        };
        let used = |version| {
            let mut client = of(version, 8);
            client.next();
            let of_step = |step: &Step| (step.statement - 2) % 8;
            client.steps.iter().map(of_step).collect::<std::collections::BTreeSet<_>>().len()
        };
        assert_eq!(used(Version::V05), 1);
        assert!(used(Version::V10) > 1);
        let mut client = of(Version::V04, 1);
        client.next();
        let Argument::Integer(last) = client.arguments[11] else { panic!("the end of a range") };
        assert!((900..=1000).contains(&last), "{last}");
        assert!(client.decided().ends_with(CONSTANT_PAD));
        assert!(client.statements.texts()[2].ends_with("FROM sbtest WHERE id=?"));
    }

    #[test]
    fn what_is_deleted_is_inserted_again_in_its_table() {
        let mut client = client(Script::WriteOnly, Which { number: 1, turn: 0 });
        client.next();
        let texts = client.statements.texts();
        let [.., delete, insert] = client.steps.as_slice() else { panic!("two steps") };
        let table = texts[delete.statement].trim_start_matches("DELETE FROM ");
        let table = table.trim_end_matches(" WHERE id=?");
        let wanted = format!("INSERT INTO {table} (");
        assert!(texts[insert.statement].starts_with(&wanted), "{wanted}");
        let count = client.arguments.len();
        assert_eq!(client.arguments[count - 5], client.arguments[count - 4]);
    }
}
