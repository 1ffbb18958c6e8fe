//! SHOW and DESCRIBE. What is read from the definitions comes from `catalog::show`; what only
//! the server knows is made here. WHERE is evaluated over the rows with the planner's binder.

use crate::Session;
use crate::access::denied;
use crate::answer::{AnswerSink, Outlet, Protocol, ResultShape};
use crate::statement::{Answer, Failure};
use crate::system_variables::session_view;
use catalog::information_schema::{self, Scope, SessionTables, VirtualType};
use catalog::show::{self, ShowAnswer};
use exec::{Outcome, RowSink};
use expr::ResultType;
use plan::physical::ResultColumn;
use syntax::ast::{Describe, Show, ShowKind, TableName, VariableScope};
use types::{CollationId, Level, SqlError, Value, ValueRef, Warning, codes, collation};

type Shown = Result<ShowAnswer, SqlError>;

fn matches(pattern: Option<&[u8]>, name: &str) -> bool {
    let rules = CollationId::UTF8MB4_GENERAL_CI.info();
    let escape = Some(u32::from('\\'));
    pattern.is_none_or(|pattern| collation::like(rules, name.as_bytes(), pattern, escape))
}

fn pairs_answer(pairs: Vec<(String, String)>, like: Option<&[u8]>) -> ShowAnswer {
    let rows = pairs.into_iter().filter(|(name, _)| matches(like, name));
    ShowAnswer {
        columns: vec![
            ("Variable_name".into(), VirtualType::Varchar(64), false),
            ("Value".into(), VirtualType::Varchar(2048), false),
        ],
        rows: rows.map(|(name, value)| vec![Value::text(name), Value::text(value)]).collect(),
    }
}

/// An answer of text columns without rows.
fn empty_answer(names: &[&str]) -> ShowAnswer {
    let column = |name: &&str| ((*name).to_owned(), VirtualType::Varchar(64), true);
    ShowAnswer { columns: names.iter().map(column).collect(), rows: Vec::new() }
}

impl Session {
    /// SHOW.
    pub(crate) fn show(
        &mut self,
        show: &Show,
        protocol: Protocol,
        outlet: &mut dyn Outlet,
    ) -> Result<Answer, Failure> {
        let like = show.like.as_deref();
        let answer = match &show.kind {
            ShowKind::Variables(scope) => self.show_variables(*scope, like),
            ShowKind::Status(scope) => self.show_status(*scope, like),
            ShowKind::ProcessList { full } => self.show_processes(*full),
            ShowKind::Warnings { offset, count } => self.show_diagnostics(false, *offset, *count),
            ShowKind::Errors { offset, count } => self.show_diagnostics(true, *offset, *count),
            ShowKind::WarningCount => {
                Ok(show::count("@@session.warning_count", self.diagnostics.warnings))
            }
            ShowKind::ErrorCount => {
                Ok(show::count("@@session.error_count", self.diagnostics.errors))
            }
            ShowKind::Grants(account) => self.show_grants(account.as_ref()),
            ShowKind::CreateUser(account) => self.show_create_user(account.as_ref()),
            ShowKind::Privileges => Ok(self.show_privileges()),
            ShowKind::Plugins => Ok(show_plugins()),
            ShowKind::Engine(engine, word) => self.show_engine(engine, word),
            ShowKind::Other(words) => show_other(words),
            kind => self.show_definitions(kind, like),
        }?;
        let answer = self.filter_show(show, answer)?;
        self.send_show(answer, protocol, outlet)
    }

    /// What `catalog::show` answers.
    fn show_definitions(&mut self, kind: &ShowKind, like: Option<&[u8]>) -> Shown {
        let (schema, table) = self.show_target(kind)?;
        let is_temporary = match (&schema, &table) {
            (Some(schema), Some(table)) => self.temporary_table(schema, table).is_some(),
            _ => false,
        };
        let server = self.server.clone();
        if let ShowKind::CreateTable(_) | ShowKind::CreateView(_) = kind
            && !is_temporary
            && let Some(answer) =
                self.show_created_view(kind, schema.as_deref(), table.as_deref())?
        {
            return Ok(answer);
        }
        let described = match (kind, &schema, &table) {
            (ShowKind::Columns { .. }, Some(schema), Some(table)) if !is_temporary => {
                self.described_view(schema, table)?
            }
            _ => None,
        };
        let temporary = match (&schema, &table) {
            (Some(schema), Some(table)) => self.temporary_table(schema, table),
            _ => None,
        };
        let temporary = described.as_ref().or(temporary);
        let view = session_view!(self, &server);
        let scope = Scope {
            catalog: &server.catalog,
            user: &self.user,
            session: &view,
            schema: schema.as_deref(),
            table: table.as_deref(),
            temporary,
        };
        let answer = match kind {
            ShowKind::Databases => show::databases(&scope, like),
            ShowKind::Tables { full, .. } => show::tables(&scope, *full, like),
            ShowKind::TableStatus { .. } => show::table_status(&scope, like),
            ShowKind::OpenTables { .. } => show::open_tables(&scope, like),
            ShowKind::Columns { full, .. } => show::columns(&scope, *full, like),
            ShowKind::Indexes { .. } => show::indexes(&scope),
            ShowKind::CreateTable(_) => show::create_table(&scope),
            ShowKind::CreateDatabase { if_not_exists, .. } => {
                show::create_database(&scope, *if_not_exists)
            }
            ShowKind::Engines => show::engines(&scope),
            ShowKind::CharacterSets => show::character_sets(&scope, like),
            ShowKind::Collations => show::collations(&scope, like),
            ShowKind::Triggers { .. } => Ok(show::triggers()),
            ShowKind::Events { .. } => Ok(empty_answer(EVENT_COLUMNS)),
            ShowKind::RoutineStatus(_) => Ok(empty_answer(ROUTINE_COLUMNS)),
            _ => return Err(SqlError::new(&codes::NOT_SUPPORTED_YET, &[&"this SHOW"])),
        };
        Ok(answer?)
    }

    /// The database and table that a SHOW is about, checked for the user's privileges.
    fn show_target(&self, kind: &ShowKind) -> Result<(Option<String>, Option<String>), SqlError> {
        let schema = |written: &Option<String>| match written {
            Some(name) => Ok(name.clone()),
            None => self.current_database(),
        };
        let of_table = |name: &TableName| {
            let database = schema(&name.schema)?;
            if self.temporary_table(&database, &name.name).is_some() {
                return Ok((Some(database), Some(name.name.clone())));
            }
            let is_virtual = database.eq_ignore_ascii_case(information_schema::SCHEMA_NAME);
            match kind {
                _ if is_virtual => {}
                // Columns are listed one by one to who may use only some of them.
                ShowKind::CreateTable(_)
                    if self.user.on_table(&database, &name.name).is_empty() =>
                {
                    let host = &self.identity.host;
                    return Err(denied("SHOW", &self.user, host, &database, &name.name));
                }
                _ => self.check_sees_table("SELECT", &database, &name.name)?,
            }
            Ok((Some(database), Some(name.name.clone())))
        };
        let of_schema = |written: &Option<String>| {
            let database = schema(written)?;
            self.check_sees_schema(&database)?;
            Ok((Some(database), None))
        };
        match kind {
            ShowKind::Tables { schema, .. }
            | ShowKind::TableStatus { schema }
            | ShowKind::OpenTables { schema }
            | ShowKind::Triggers { schema }
            | ShowKind::Events { schema } => of_schema(schema),
            ShowKind::CreateDatabase { name, .. } => {
                let of_schema = of_schema(&Some(name.clone()));
                of_schema.map_err(|_| self.denied_schema(&self.identity.host, name))
            }
            ShowKind::Columns { table, .. } | ShowKind::Indexes { table } => of_table(table),
            ShowKind::CreateTable(table) | ShowKind::CreateView(table) => of_table(table),
            _ => Ok((None, None)),
        }
    }

    /// DESCRIBE.
    pub(crate) fn describe_table(
        &mut self,
        describe: &Describe,
        protocol: Protocol,
        outlet: &mut dyn Outlet,
    ) -> Result<Answer, Failure> {
        let kind = ShowKind::Columns { full: false, table: describe.table.clone() };
        let like = describe.column.as_ref().map(|column| column.as_bytes());
        let answer = self.show_definitions(&kind, like)?;
        self.send_show(answer, protocol, outlet)
    }

    fn show_variables(&mut self, scope: VariableScope, like: Option<&[u8]>) -> Shown {
        let server = self.server.clone();
        let view = session_view!(self, &server);
        Ok(pairs_answer(view.variables(scope == VariableScope::Global), like))
    }

    fn show_status(&mut self, scope: VariableScope, like: Option<&[u8]>) -> Shown {
        let server = self.server.clone();
        let view = session_view!(self, &server);
        Ok(pairs_answer(view.status(scope == VariableScope::Global), like))
    }

    fn show_processes(&mut self, full: bool) -> Shown {
        let server = self.server.clone();
        let view = session_view!(self, &server);
        let text = VirtualType::Varchar;
        let columns = vec![
            ("Id".into(), VirtualType::BigInt(10), false),
            ("User".into(), text(128), false),
            ("Host".into(), text(64), false),
            ("db".into(), text(64), true),
            ("Command".into(), text(16), false),
            ("Time".into(), VirtualType::Int(7), true),
            ("State".into(), text(64), true),
            ("Info".into(), text(if full { 65_535 } else { 100 }), true),
            ("Progress".into(), VirtualType::Decimal(7, 3), false),
        ];
        let optional = |value: Option<String>| value.map_or(Value::Null, Value::text);
        let rows = view.processes().into_iter().map(|process| {
            let shown = |info: String| if full { info } else { info.chars().take(100).collect() };
            vec![
                Value::Int(process.id as i64),
                Value::text(process.user),
                Value::text(process.host),
                optional(process.schema),
                Value::text(process.command),
                Value::Int((process.time_ms / 1000) as i64),
                Value::text(process.state),
                optional(process.info.map(shown)),
                Value::Decimal(types::Decimal::new(0, 3)),
            ]
        });
        Ok(ShowAnswer { columns, rows: rows.collect() })
    }

    fn show_diagnostics(&self, errors: bool, offset: u64, count: Option<u64>) -> Shown {
        let wanted = |warning: &&Warning| !errors || warning.level == Level::Error;
        let listed = self.diagnostics.list.iter().filter(wanted);
        let limited = listed.skip(offset as usize).take(count.unwrap_or(u64::MAX) as usize);
        let row = |warning: &Warning| {
            vec![
                Value::text(warning.level.name()),
                Value::UInt(u64::from(warning.code)),
                Value::text(&warning.message),
            ]
        };
        Ok(ShowAnswer { columns: show::diagnostics_columns(), rows: limited.map(row).collect() })
    }

    fn show_engine(&mut self, engine: &str, word: &str) -> Shown {
        if !engine.eq_ignore_ascii_case("InnoDB") {
            return Err(SqlError::new(&codes::UNKNOWN_STORAGE_ENGINE, &[&engine]));
        }
        self.require_global(catalog::Privilege::Process)?;
        let columns = vec![
            ("Type".into(), VirtualType::Varchar(10), false),
            ("Name".into(), VirtualType::Varchar(512), false),
            ("Status".into(), VirtualType::LongText, false),
        ];
        let rows = match word {
            "STATUS" => {
                let text = self.engine_status_text();
                vec![vec![Value::text("InnoDB"), Value::text(""), Value::text(text)]]
            }
            _ => Vec::new(),
        };
        Ok(ShowAnswer { columns, rows })
    }

    /// The monitor's text: what the engine counts, in the sections that tools look for.
    fn engine_status_text(&self) -> String {
        let now = types::TimeZone::System.to_local(self.eval.now);
        let mut shown = Vec::new();
        let column = catalog::information_schema::VirtualType::DateTime(0).column_type();
        let zone = self.settings.time_zone;
        wire::text::push_text(&mut shown, ValueRef::DateTime(now), &column, zone);
        let line = "=====================================";
        let mut text = format!(
            "\n{line}\n{} 0x0 INNODB MONITOR OUTPUT\n{line}\n",
            String::from_utf8_lossy(&shown)
        );
        if let Some(deadlock) = self.server.catalog.engine().last_deadlock() {
            let rule = "------------------------";
            text.push_str(&format!("{rule}\nLATEST DETECTED DEADLOCK\n{rule}\n"));
            let at = zone.to_local(types::Timestamp(deadlock.at_micros / 1_000_000 * 1_000_000));
            shown.clear();
            wire::text::push_text(&mut shown, ValueRef::DateTime(at), &column, zone);
            text.push_str(&format!("{} 0x0\n", String::from_utf8_lossy(&shown)));
            let catalog = &self.server.catalog;
            text.push_str(&catalog::information_schema::deadlock_text(catalog, &deadlock));
        }
        let status = self.server.catalog.engine().status();
        let sections = [
            ("TRANSACTIONS", &["trx", "lock", "undo", "purge", "deadlock", "history"][..]),
            ("LOG", &["log", "os_log", "wal", "checkpoint", "lsn"]),
            ("BUFFER POOL AND MEMORY", &["buffer", "page", "pool", "pages", "mem"]),
            ("ROW OPERATIONS", &["rows", "row"]),
        ];
        for (title, words) in sections {
            let rule = "-".repeat(title.len());
            text.push_str(&format!("{rule}\n{title}\n{rule}\n"));
            for (name, value) in &status {
                let short = name.strip_prefix("Innodb_").unwrap_or(name);
                if words.iter().any(|word| short.starts_with(word)) {
                    text.push_str(&format!("{} {value}\n", short.replace('_', " ")));
                }
            }
        }
        text.push_str(
            "0 queries inside InnoDB, 0 queries in queue\n\
             ----------------------------\nEND OF INNODB MONITOR OUTPUT\n\
             ============================\n",
        );
        text
    }

    fn show_privileges(&self) -> ShowAnswer {
        let columns = vec![
            ("Privilege".into(), VirtualType::Varchar(25), false),
            ("Context".into(), VirtualType::Varchar(48), false),
            ("Comment".into(), VirtualType::Varchar(128), false),
        ];
        let context = |levels: u8| {
            let words = [(1, "Server Admin"), (2, "Databases"), (4, "Tables")];
            let named = words.iter().filter(|(bit, _)| levels & bit != 0).map(|(_, word)| *word);
            named.collect::<Vec<_>>().join(",")
        };
        let title = |name: &str| {
            let mut text = name.to_ascii_lowercase();
            text[..1].make_ascii_uppercase();
            text
        };
        let rows = catalog::Privilege::ALL.iter().map(|privilege| {
            vec![
                Value::text(title(privilege.name())),
                Value::text(context(privilege.levels())),
                Value::text(""),
            ]
        });
        ShowAnswer { columns, rows: rows.collect() }
    }

    /// WHERE.
    fn filter_show(&mut self, show: &Show, mut answer: ShowAnswer) -> Shown {
        let Some(condition) = &show.filter else {
            return Ok(answer);
        };
        let columns = show_columns(&answer);
        let filter = self.bind_filter(condition, &columns)?;
        let mut kept = Vec::new();
        for row in answer.rows {
            if self.passes(&filter, &row)? {
                kept.push(row);
            }
        }
        answer.rows = kept;
        Ok(answer)
    }

    pub(crate) fn send_show(
        &mut self,
        answer: ShowAnswer,
        protocol: Protocol,
        outlet: &mut dyn Outlet,
    ) -> Result<Answer, Failure> {
        let columns = show_columns(&answer);
        self.send_rows(&columns, answer.rows, protocol, outlet)
    }

    /// Writes a result made of values.
    pub(crate) fn send_rows(
        &mut self,
        columns: &[ResultColumn],
        rows: Vec<Vec<Value>>,
        protocol: Protocol,
        outlet: &mut dyn Outlet,
    ) -> Result<Answer, Failure> {
        let format = self.result_format(protocol, false);
        let shape = ResultShape::new(columns, self.settings.results);
        let mut sink = AnswerSink::new(&mut self.out, outlet, format, &shape);
        sink.begin(None)?;
        let found_rows = rows.len() as u64;
        for row in &rows {
            let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
            sink.row(&values)?;
        }
        Ok(Answer::Rows(Outcome { found_rows, has_rows: true, ..Outcome::default() }))
    }
}

fn show_columns(answer: &ShowAnswer) -> Vec<ResultColumn> {
    let column = |(name, kind, nullable): &(String, VirtualType, bool)| ResultColumn {
        name: name.clone(),
        org_name: name.clone(),
        table: String::new(),
        org_table: String::new(),
        schema: "information_schema".to_owned(),
        result: ResultType::column(kind.column_type(), *nullable),
        flags: 0,
    };
    answer.columns.iter().map(column).collect()
}

const EVENT_COLUMNS: &[&str] = &[
    "Db",
    "Name",
    "Definer",
    "Time zone",
    "Type",
    "Execute at",
    "Interval value",
    "Interval field",
    "Starts",
    "Ends",
    "Status",
    "Originator",
    "character_set_client",
    "collation_connection",
    "Database Collation",
];

const ROUTINE_COLUMNS: &[&str] = &[
    "Db",
    "Name",
    "Type",
    "Definer",
    "Modified",
    "Created",
    "Security_type",
    "Comment",
    "character_set_client",
    "collation_connection",
    "Database Collation",
];

fn show_plugins() -> ShowAnswer {
    let mut answer = empty_answer(&["Name", "Status", "Type", "Library", "License"]);
    for (name, kind) in [("mysql_native_password", "AUTHENTICATION"), ("InnoDB", "STORAGE ENGINE")]
    {
        answer.rows.push(vec![
            Value::text(name),
            Value::text("ACTIVE"),
            Value::text(kind),
            Value::Null,
            Value::text("MIT OR Apache-2.0"),
        ]);
    }
    answer
}

/// Statements about parts that this server has not, where nothing is the true answer.
fn show_other(words: &str) -> Shown {
    Ok(match words {
        "SLAVE STATUS" | "REPLICA STATUS" | "ALL SLAVES STATUS" | "ALL REPLICAS STATUS" => {
            empty_answer(&["Slave_IO_State", "Master_Host", "Master_User", "Master_Port"])
        }
        "MASTER STATUS" | "BINLOG STATUS" => {
            empty_answer(&["File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB"])
        }
        "SLAVE HOSTS" | "REPLICA HOSTS" => {
            empty_answer(&["Server_id", "Host", "Port", "Master_id"])
        }
        "BINARY LOGS" | "MASTER LOGS" => {
            let message = "You are not using binary logging";
            return Err(SqlError { code: 1381, sqlstate: *b"HY000", message: message.to_owned() });
        }
        "PROFILES" => empty_answer(&["Query_ID", "Duration", "Query"]),
        other => {
            let feature = format!("SHOW {other}");
            return Err(SqlError::new(&codes::NOT_SUPPORTED_YET, &[&feature]));
        }
    })
}
