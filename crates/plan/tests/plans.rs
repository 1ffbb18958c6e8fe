//! SQL in, plan out. `tests/data/*.sql` holds a statement a line; definitions are carried out,
//! queries are planned, and what came of each stands in `*.out`. `EXPLAIN` lines show MariaDB's
//! rows. `GANNET_BLESS=1` writes the answers anew.

mod support;

use catalog::{
    Account, Authentication, Catalog, MetadataLockSet, PrivilegeSet, TemporaryTables,
    UserPrivileges,
};
use expr::{EvalContext, ResultType};
use plan::{PlanContext, SystemVariables};
use std::path::PathBuf;
use std::sync::Arc;
use syntax::ast::{Statement, SystemVariable};
use syntax::{ParseOptions, parse};
use types::{SqlError, Value};

struct NoVariables;

impl SystemVariables for NoVariables {
    fn read(&self, variable: &SystemVariable) -> Result<(Value, ResultType), SqlError> {
        Err(SqlError::new(&types::codes::UNKNOWN_SYSTEM_VARIABLE, &[&variable.name]))
    }
}

struct Desk {
    catalog: Arc<Catalog>,
    locks: MetadataLockSet,
    user: UserPrivileges,
    eval: EvalContext,
}

impl Desk {
    fn new() -> Self {
        let engine = Arc::new(support::PaperEngine::default());
        let account = Account::new("root", "localhost");
        let mut user = UserPrivileges::new(account, Authentication::NoPassword);
        user.global = PrivilegeSet::all_at(u8::MAX);
        Self {
            catalog: Catalog::open(engine).expect("an empty dictionary"),
            locks: MetadataLockSet::default(),
            user,
            eval: EvalContext::new(),
        }
    }

    /// Parameters are BIGINT, of a line that begins with the comment `/* double */` DOUBLE.
    fn answer(&mut self, line: &str) -> String {
        let parameter = match line.starts_with("/* double */") {
            true => ResultType::double(false),
            false => ResultType::bigint(false, false),
        };
        let options = ParseOptions { parameters: true, ..ParseOptions::default() };
        let answer = match parse(line.as_bytes(), &options) {
            Ok(parsed) => self.run(&parsed.statement, &vec![parameter; parsed.parameters as usize]),
            Err(error) => format!("{error}\n"),
        };
        self.locks.release_all();
        answer
    }

    fn run(&mut self, statement: &Statement, parameters: &[ResultType]) -> String {
        let inner = match statement {
            Statement::Explain(explain) => explain.statement.as_ref(),
            Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_) => Some(statement),
            _ => None,
        };
        let Some(inner) = inner else { return self.define(statement) };
        let mut context = PlanContext {
            locked: None,
            temporary: None,
            catalog: &self.catalog,
            locks: &mut self.locks,
            user: &self.user,
            database: Some("test"),
            eval: &self.eval,
            variables: &NoVariables,
            stat_tables: plan::StatTables::default(),
            parameters,
            values: &[],
        };
        let prepared = match plan::prepare(inner, &mut context) {
            Ok(prepared) => prepared,
            Err(error) => return format!("{error}\n"),
        };
        if !matches!(statement, Statement::Explain(_)) {
            return plan::text::plan_text(prepared.plan());
        }
        let (_, rows) =
            plan::explain(&prepared, plan::ExplainOptions::default()).expect("explainable");
        let row = |row: &Vec<Value>| {
            let values = row.iter().map(|value| match value {
                Value::Null => "NULL".to_string(),
                Value::Bytes(text) => String::from_utf8_lossy(text).into_owned(),
                Value::UInt(number) => number.to_string(),
                other => format!("{other:?}"),
            });
            values.collect::<Vec<_>>().join(" | ") + "\n"
        };
        rows.iter().map(row).collect()
    }

    fn define(&mut self, statement: &Statement) -> String {
        let memory = base::MemoryAccount::new(1 << 30);
        let mut context = exec::ddl::DdlContext {
            catalog: &self.catalog,
            locks: &mut self.locks,
            eval: &mut self.eval,
            schema: Some("test"),
            memory: &memory,
            cancel: &runtime::CancelToken::new(),
            temporary: &mut TemporaryTables::default(),
            transaction: None,
            query: None,
        };
        match exec::ddl::execute(&mut context, statement) {
            Ok(Some(_)) => String::new(),
            Ok(None) => "not a definition\n".to_string(),
            Err(error) => format!("{}\n", error.sql),
        }
    }
}

fn run_files() -> Vec<String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut differences = Vec::new();
    for name in ["access", "join", "subquery", "group", "change", "explain", "errors", "workloads"]
    {
        let file = folder.join(name).with_extension("sql");
        let mut desk = Desk::new();
        let mut answers = String::new();
        let setup = std::fs::read_to_string(folder.join("tables.sql")).expect("tables.sql");
        for line in setup.lines() {
            assert_eq!(desk.answer(line), "", "{line}");
        }
        let text = std::fs::read_to_string(&file).expect("a data file");
        for line in text.lines() {
            answers += &format!("> {line}\n{}\n", desk.answer(line));
        }
        let recorded = file.with_extension("out");
        if std::env::var_os("GANNET_BLESS").is_some() {
            std::fs::write(&recorded, &answers).expect("writable");
        }
        let expected = std::fs::read_to_string(&recorded).unwrap_or_default();
        let (got, expected) = (answers.split("\n\n"), expected.split("\n\n"));
        differences.extend(
            got.zip(expected)
                .filter(|(g, e)| g != e)
                .map(|(got, expected)| format!("{name}: got\n{got}\nexpected\n{expected}")),
        );
        if answers.matches("\n\n").count() != text.lines().count() {
            differences.push(format!("{name}: statements and answers differ in number"));
        }
    }
    differences
}

#[test]
fn plans_are_as_recorded() {
    let runtime = runtime::Runtime::start(runtime::Config::default()).expect("workers");
    let differences = runtime.run(run_files);
    runtime.shutdown();
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

/// Prints what parsing and planning of frequent statements cost.
#[test]
#[ignore = "a measurement"]
fn cost_of_planning() {
    let runtime = runtime::Runtime::start(runtime::Config::default()).expect("workers");
    runtime.run(|| {
        let mut desk = Desk::new();
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let setup = std::fs::read_to_string(folder.join("tables.sql")).expect("tables.sql");
        setup.lines().for_each(|line| assert_eq!(desk.answer(line), ""));
        for line in [
            "SELECT c FROM t WHERE id=12345",
            "SELECT c FROM t WHERE id BETWEEN 100 AND 199 ORDER BY c",
            "UPDATE t SET k=k+1 WHERE id=777",
            "INSERT INTO t (id, k, c, n) VALUES (5, 7, 'abcdef', 1)",
            "DELETE FROM t WHERE id=5",
            "SELECT t.c, u.b FROM t JOIN u ON t.id = u.a WHERE u.b = 'x' AND t.k > 5",
        ] {
            let options = ParseOptions::default();
            let count = 20_000;
            let start = std::time::Instant::now();
            for _ in 0..count {
                std::hint::black_box(parse(line.as_bytes(), &options).expect("parses"));
            }
            let parsing = start.elapsed() / count;
            let parsed = parse(line.as_bytes(), &options).expect("parses");
            let start = std::time::Instant::now();
            for _ in 0..count {
                let mut context = PlanContext {
                    locked: None,
                    temporary: None,
                    catalog: &desk.catalog,
                    locks: &mut desk.locks,
                    user: &desk.user,
                    database: Some("test"),
                    eval: &desk.eval,
                    variables: &NoVariables,
                    stat_tables: plan::StatTables::default(),
                    parameters: &[],
                    values: &[],
                };
                let prepared = plan::prepare(&parsed.statement, &mut context);
                std::hint::black_box(prepared.expect("plans"));
                desk.locks.release_all();
            }
            println!("parse {parsing:?} plan {:?}: {line}", start.elapsed() / count);
        }
    });
    runtime.shutdown();
}

/// The deepest statements that the parser lets through are planned on a fiber's stack.
#[test]
fn deep_statements_fit_a_fiber() {
    let runtime = runtime::Runtime::start(runtime::Config::default()).expect("workers");
    runtime.run(|| {
        let mut desk = Desk::new();
        let setup = include_str!("data/tables.sql");
        setup.lines().for_each(|line| assert_eq!(desk.answer(line), ""));
        for (open, middle, close) in [
            ("(", "id", ")"),
            ("- ", "id", ""),
            ("NOT ", "id", ""),
            ("ABS(", "id", ")"),
            ("CASE WHEN id THEN ", "id", " ELSE 1 END"),
            ("1 + (", "id", ")"),
            ("(SELECT ", "id", " FROM u WHERE a = id)"),
            ("EXISTS (SELECT 1 FROM u WHERE a IN (1, ", "id", "))"),
            ("id IN (SELECT a FROM u WHERE d = ", "id", ")"),
            ("CAST(", "id", " AS CHAR)"),
            ("COALESCE(NULL, ", "id", ")"),
        ] {
            let mut planned = 0;
            for count in 1..100 {
                let nested = format!("{}{middle}{}", open.repeat(count), close.repeat(count));
                let answer = desk.answer(&format!("SELECT * FROM t WHERE {nested}"));
                if !answer.starts_with("1436") {
                    planned = count;
                }
            }
            assert!(planned >= 10, "{open}: {planned}");
        }
        let sum = format!("SELECT id{} FROM t", " + k".repeat(127));
        assert!(desk.answer(&sum).starts_with("select"));
        let any = format!("SELECT id FROM t WHERE id = 1{}", " OR id = 2".repeat(3000));
        assert!(desk.answer(&any).starts_with("select"));
        let from: Vec<String> = (0..40).map(|n| format!("small AS s{n}")).collect();
        let from = from.join(", ");
        assert!(desk.answer(&format!("SELECT 1 FROM {from}")).starts_with("select"));
    });
    runtime.shutdown();
}
