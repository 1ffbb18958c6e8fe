//! USE, KILL, FLUSH, SHUTDOWN, table upkeep, and the time limit of statements.

use crate::Session;
use crate::analyze::{Wishes, collects_always};
use crate::answer::{Outlet, Protocol};
use crate::process::Process;
use crate::statement::{Answer, Failure};
use catalog::information_schema::{self, VirtualType};
use catalog::show::ShowAnswer;
use catalog::{Partitions, Privilege, TableEntry, TableRef};
use engine_api::{RowBuffer, ScanOptions};
use expr::ResultType;
use plan::physical::ResultColumn;
use runtime::{CancelReason, CancelToken};
use std::sync::Arc;
use syntax::ast::{Flush, Kill, KillTarget, MaintenanceOperation, TableMaintenance};
use types::row::RowView;
use types::{SqlError, Value, codes};

/// Cancels a statement that runs too long; dropping it calls that off.
pub(crate) struct StatementTimer {
    over: Arc<runtime::sync::Event>,
}

impl Drop for StatementTimer {
    fn drop(&mut self) {
        self.over.set();
    }
}

impl Session {
    /// USE. Fails with 1044 and 1049.
    pub(crate) fn use_database(&mut self, name: &str) -> Result<(), SqlError> {
        if name.eq_ignore_ascii_case(information_schema::SCHEMA_NAME) {
            self.set_database(Some(information_schema::SCHEMA_NAME));
            return Ok(());
        }
        self.check_sees_schema(name)?;
        if self.server.catalog.schema(name).is_none() {
            return Err(SqlError::new(&codes::BAD_DB_ERROR, &[&name]));
        }
        self.set_database(Some(name));
        Ok(())
    }

    /// KILL by connection id.
    pub(crate) fn kill(&mut self, id: u64, query_only: bool) -> Result<(), SqlError> {
        let found = self.server.processes.find(id);
        let process = found.ok_or_else(|| SqlError::new(&codes::NO_SUCH_THREAD, &[&id]))?;
        self.check_kills(&process)?;
        if query_only {
            process.kill_query(None);
        } else {
            process.kill_connection();
        }
        self.survive(&process)
    }

    /// KILL QUERY ID.
    fn kill_query(&mut self, query_id: u64) -> Result<(), SqlError> {
        let is_it = |process: &Process| process.is_running() && process.info().query_id == query_id;
        if let Some(process) = self.server.processes.all().iter().find(|process| is_it(process)) {
            self.check_kills(process)?;
            // It may have ended meanwhile.
            if process.kill_query(Some(query_id)) {
                return self.survive(process);
            }
        }
        let text = format!("Unknown query id: {query_id}");
        Err(SqlError::with_message(&codes::NO_SUCH_THREAD, text))
    }

    fn check_kills(&self, process: &Process) -> Result<(), SqlError> {
        let own = process.info().user == self.identity.user;
        let admin = self.user.global.has(Privilege::Super)
            || self.user.global.has(Privilege::ConnectionAdmin);
        match own || admin {
            true => Ok(()),
            false => Err(SqlError::new(&codes::KILL_DENIED_ERROR, &[&process.id()])),
        }
    }

    /// Who kills himself is interrupted.
    fn survive(&self, killed: &Process) -> Result<(), SqlError> {
        match killed.id() == self.process.id() {
            true => Err(SqlError::new(&codes::QUERY_INTERRUPTED, &[])),
            false => Ok(()),
        }
    }

    /// KILL.
    pub(crate) fn kill_statement(&mut self, kill: &Kill) -> Result<(), SqlError> {
        let number = |value: Value| match value {
            Value::Int(id) => u64::try_from(id).unwrap_or(0),
            Value::UInt(id) => id,
            _ => 0,
        };
        match &kill.target {
            KillTarget::Connection(id) => {
                let id = number(self.constant(id)?.0);
                self.kill(id, kill.query)
            }
            KillTarget::QueryId(id) => {
                let query_id = number(self.constant(id)?.0);
                self.kill_query(query_id)
            }
            KillTarget::User(account) => {
                let user = match account.current {
                    true => self.identity.user.clone(),
                    false => account.user.clone(),
                };
                let own = self.process.id();
                let all = self.server.processes.all();
                for process in all.iter().filter(|p| p.id() != own && p.info().user == user) {
                    self.kill(u64::from(process.id()), kill.query)?;
                }
                Ok(())
            }
        }
    }

    /// FLUSH: what is flushed here is always up to date, but for statistics that were changed by
    /// hand; counters are reset.
    pub(crate) fn flush(&mut self, flush: &Flush) -> Result<(), SqlError> {
        self.require_global(Privilege::Reload)?;
        if flush.read_lock || flush.for_export {
            return self.flush_and_lock(flush);
        }
        self.check_locked_flush(flush)?;
        self.commit_implicitly()?;
        for item in &flush.items {
            match item.as_str() {
                "STATUS" => self.status.reset(),
                "PRIVILEGES" => self.server.passwords.forget(),
                "USER_RESOURCES" => self.server.account_connections.forget_hours(),
                "TABLES" | "TABLE" => self.server.catalog.reload_statistics(),
                "HOSTS" | "LOGS" | "ENGINE LOGS" | "ERROR LOGS" | "GENERAL LOGS" | "SLOW LOGS"
                | "QUERY CACHE" => {}
                other => {
                    let feature = format!("FLUSH {other}");
                    return Err(SqlError::new(&codes::NOT_SUPPORTED_YET, &[&feature]));
                }
            }
        }
        Ok(())
    }

    /// SHUTDOWN: the server stops once this answer is out.
    pub(crate) fn shutdown(&mut self) -> Result<(), SqlError> {
        self.require_global(Privilege::Shutdown)?;
        self.asks_shutdown = true;
        Ok(())
    }

    /// Starts the clock of max_statement_time, if it is set.
    pub(crate) fn start_timer(&self) -> Option<StatementTimer> {
        let limit = self.settings.statement_limit?;
        let over = Arc::new(runtime::sync::Event::default());
        let (event, token): (_, CancelToken) = (over.clone(), self.process.cancel_token().clone());
        runtime::spawn("statement timer", move || {
            let deadline = runtime::now() + limit;
            let wake = event.wait_uncancellable(runtime::WaitClass::Sleep, Some(deadline));
            if wake == runtime::Wake::TimedOut {
                token.cancel(CancelReason::Timeout);
            }
        });
        Some(StatementTimer { over })
    }

    /// The columns of a table with their defaults as text, for COM_FIELD_LIST.
    pub(crate) fn table_columns(
        &self,
        schema: &str,
        table: &str,
    ) -> Result<Vec<(ResultColumn, Option<Vec<u8>>)>, SqlError> {
        self.check_sees_table("SELECT", schema, table)?;
        let describe = |name: &str, result| ResultColumn {
            name: name.to_owned(),
            org_name: name.to_owned(),
            table: table.to_owned(),
            org_table: table.to_owned(),
            schema: schema.to_owned(),
            result,
            flags: 0,
        };
        Ok(match self.server.catalog.find(schema, table)? {
            TableRef::Base(entry) | TableRef::View(entry) => {
                let definition = entry.definition();
                let columns = definition.columns.iter().enumerate().map(|(position, column)| {
                    let result = ResultType::column(column.column_type, column.nullable);
                    let default = catalog::describe::default_text(column);
                    let default = default.or_else(|| implicit_default(column).map(str::to_owned));
                    let flags = plan::column_flags(definition, position, column);
                    let described = ResultColumn { flags, ..describe(&column.name, result) };
                    (described, default.map(String::into_bytes))
                });
                columns.collect()
            }
            TableRef::Virtual(table) => {
                let columns = table.columns.iter().map(|column| {
                    let column_type = column.kind.column_type();
                    let result = ResultType::column(column_type, column.nullable);
                    (describe(column.name, result), None)
                });
                columns.collect()
            }
        })
    }

    /// Which engine-independent statistics an ANALYZE TABLE asks for, if any.
    fn statistics_wishes(&self, maintenance: &TableMaintenance) -> Option<Wishes> {
        if maintenance.operation != MaintenanceOperation::Analyze {
            return None;
        }
        let always = || {
            let wish = self.variables.value("use_stat_tables").show().to_ascii_uppercase();
            collects_always(&wish).then_some(Wishes::ALL)
        };
        Wishes::of(&maintenance.options).or_else(always)
    }

    /// Collects what is asked for; false if that cannot be.
    fn add_statistics(
        &mut self,
        entry: &TableEntry,
        wishes: Option<&Wishes>,
        name: &str,
        rows: &mut Vec<(String, &'static str, String)>,
    ) -> Result<bool, SqlError> {
        let Some(wishes) = wishes else { return Ok(true) };
        let lines = self.collect_statistics(entry, wishes)?;
        let goes_on = lines.iter().all(|(kind, _)| *kind != "error");
        rows.extend(lines.into_iter().map(|(kind, text)| (name.to_owned(), kind, text)));
        Ok(goes_on)
    }

    /// CHECK TABLE, ANALYZE TABLE and their kin: one line per finding.
    pub(crate) fn maintain(
        &mut self,
        maintenance: &TableMaintenance,
        protocol: Protocol,
        outlet: &mut dyn Outlet,
    ) -> Result<Answer, Failure> {
        let wishes = self.statistics_wishes(maintenance);
        self.commit_implicitly()?;
        if maintenance.operation == MaintenanceOperation::Checksum {
            return self.checksum(maintenance, protocol, outlet);
        }
        let mut rows = Vec::new();
        for name in &maintenance.tables {
            let schema = match &name.schema {
                Some(schema) => schema.clone(),
                None => self.current_database()?,
            };
            let full_name = format!("{schema}.{}", name.name);
            if let Some(entry) = self.temporary_table(&schema, &name.name) {
                if wishes.is_some() {
                    rows.push((full_name.clone(), "error", "Invalid argument".to_owned()));
                    continue;
                }
                maintain_table(maintenance.operation, &full_name, entry, &mut rows);
                continue;
            }
            match maintenance.operation {
                MaintenanceOperation::Check => {
                    self.check_sees_table("CHECK TABLE", &schema, &name.name)?;
                }
                _ => self.require_all(&[Privilege::Select, Privilege::Insert], name)?,
            }
            let found = self.server.catalog.open_table(&mut self.locks, &schema, &name.name);
            match found.and_then(TableRef::base) {
                Ok(entry) => {
                    let operation = maintenance.operation;
                    if let Some(names) = &maintenance.partitions {
                        maintain_partitions((operation, names), &full_name, &entry, &mut rows)?;
                    } else if self.add_statistics(&entry, wishes.as_ref(), &full_name, &mut rows)? {
                        maintain_table(operation, &full_name, &entry, &mut rows);
                    }
                }
                Err(error) => {
                    rows.push((full_name.clone(), "Error", SqlError::from(error).message));
                    rows.push((full_name, "status", "Operation failed".to_owned()));
                }
            }
        }
        self.locks.release_all();
        let operation = operation_name(maintenance.operation);
        let row = |(table, kind, text): (String, &str, String)| {
            let values = [table, operation.to_owned(), kind.to_owned(), text];
            values.into_iter().map(Value::text).collect()
        };
        let answer = ShowAnswer {
            columns: vec![
                ("Table".into(), VirtualType::Varchar(128), true),
                ("Op".into(), VirtualType::Varchar(10), true),
                ("Msg_type".into(), VirtualType::Varchar(10), true),
                ("Msg_text".into(), VirtualType::LongText, true),
            ],
            rows: rows.into_iter().map(row).collect(),
        };
        self.send_show(answer, protocol, outlet)
    }
}

impl Session {
    /// CHECKSUM TABLE: a number for each table, NULL for those that are not there.
    fn checksum(
        &mut self,
        maintenance: &TableMaintenance,
        protocol: Protocol,
        outlet: &mut dyn Outlet,
    ) -> Result<Answer, Failure> {
        let quick = maintenance.options.iter().any(|option| option == "QUICK");
        let mut rows = Vec::new();
        for name in &maintenance.tables {
            let schema = match &name.schema {
                Some(schema) => schema.clone(),
                None => self.current_database()?,
            };
            let entry = match self.temporary_table(&schema, &name.name) {
                Some(entry) => Ok(entry.clone()),
                None => {
                    self.require_all(&[Privilege::Select], name)?;
                    let catalog = self.server.catalog.clone();
                    let found = catalog.open_table(&mut self.locks, &schema, &name.name);
                    found.and_then(TableRef::base)
                }
            };
            let sum = match entry {
                Ok(_) if quick => Value::Null,
                Ok(entry) => Value::Int(self.checksum_of(&entry)?.into()),
                Err(error) => {
                    let warning = types::Warning::from(&SqlError::from(error));
                    let level = types::Level::Error;
                    self.eval.push_warning(types::Warning { level, ..warning });
                    Value::Null
                }
            };
            rows.push(vec![Value::text(format!("{schema}.{}", name.name)), sum]);
        }
        let answer = ShowAnswer {
            columns: vec![
                ("Table".into(), VirtualType::Varchar(128), true),
                ("Checksum".into(), VirtualType::BigInt(22), true),
            ],
            rows,
        };
        self.send_show(answer, protocol, outlet)
    }

    /// The sum of the checksums of all rows as text, so that their order does not matter.
    fn checksum_of(&mut self, entry: &TableEntry) -> Result<u32, SqlError> {
        let failed = |error| catalog::engine_error(&error, "");
        let table = entry.handle()?;
        let mut transaction = self.passing_transaction();
        let mut cursor =
            table.scan(&mut *transaction, ScanOptions::whole_table()).map_err(failed)?;
        let (mut row, mut sum, mut text) = (RowBuffer::default(), 0u32, Vec::new());
        let columns = &entry.definition().columns;
        while cursor.next(&mut *transaction, &mut row).map_err(failed)? {
            runtime::yield_if_due();
            if self.process.cancel_token().is_cancelled() {
                return Err(SqlError::new(&codes::QUERY_INTERRUPTED, &[]));
            }
            let view = RowView::new(&entry.layouts().row, &row.key, &row.payload);
            let mut checksum = 0;
            for (position, column) in columns.iter().enumerate() {
                let value = view.get(position);
                if value.is_null() {
                    checksum = base::checksum::crc32c_append(checksum, &[0]);
                    continue;
                }
                text.clear();
                let zone = types::TimeZone::Fixed(0);
                types::text::write_text(value, &column.column_type, zone, &mut text);
                checksum = base::checksum::crc32c_append(checksum, &text);
                checksum = base::checksum::crc32c_append(checksum, &[1]);
            }
            sum = sum.wrapping_add(checksum);
        }
        Ok(sum)
    }
}

/// What a column without a default has in a row that says nothing of it, outside strict mode.
fn implicit_default(column: &engine_api::ColumnDefinition) -> Option<&'static str> {
    use types::TypeKind;
    if column.nullable {
        return None;
    }
    Some(match column.column_type.kind {
        TypeKind::Date => "0000-00-00",
        TypeKind::DateTime | TypeKind::Timestamp => "0000-00-00 00:00:00",
        TypeKind::Time => "00:00:00",
        TypeKind::Year => "0000",
        kind if kind.is_number() => "0",
        _ => "",
    })
}

fn operation_name(operation: MaintenanceOperation) -> &'static str {
    match operation {
        MaintenanceOperation::Analyze => "analyze",
        MaintenanceOperation::Optimize => "optimize",
        MaintenanceOperation::Check => "check",
        MaintenanceOperation::Repair => "repair",
        MaintenanceOperation::Checksum => "checksum",
    }
}

/// ALTER TABLE ... CHECK PARTITION and its kin; 1505 for a table without partitions. All of them
/// lie in one tree.
fn maintain_partitions(
    (operation, names): (MaintenanceOperation, &[String]),
    name: &str,
    entry: &TableEntry,
    rows: &mut Vec<(String, &'static str, String)>,
) -> Result<(), SqlError> {
    let Some(partitions) = Partitions::of(entry.definition()) else {
        return Err(SqlError::new(&codes::PARTITION_MGMT_ON_NONPARTITIONED, &[]));
    };
    let mut line = |kind, text: &str| rows.push((name.to_owned(), kind, text.to_owned()));
    if names.iter().any(|partition| partitions.position(partition).is_none()) {
        line("error", &SqlError::new(&codes::DROP_PARTITION_NON_EXISTENT, &[]).message);
        return Ok(());
    }
    match operation {
        MaintenanceOperation::Optimize => {
            let text = "Table does not support optimize on partitions. All partitions will be \
                        rebuilt and analyzed.";
            line("note", text);
            line("status", "OK");
        }
        MaintenanceOperation::Repair => line("status", "OK"),
        _ => maintain_table(operation, name, entry, rows),
    }
    Ok(())
}

fn maintain_table(
    operation: MaintenanceOperation,
    name: &str,
    entry: &TableEntry,
    rows: &mut Vec<(String, &'static str, String)>,
) {
    let mut line = |kind, text: &str| rows.push((name.to_owned(), kind, text.to_owned()));
    match operation {
        MaintenanceOperation::Check => {
            let findings = entry.handle().map(|table| table.check());
            match findings {
                Ok(Ok(findings)) if findings.is_empty() => line("status", "OK"),
                Ok(Ok(findings)) => {
                    for finding in findings {
                        line("error", &format!("{}: {}", finding.object, finding.detail));
                    }
                    line("error", "Corrupt");
                }
                Ok(Err(error)) => {
                    line("error", &error.to_string());
                    line("error", "Corrupt");
                }
                Err(error) => {
                    line("error", &error.to_string());
                    line("error", "Corrupt");
                }
            }
        }
        // Statistics are kept up to date without being asked for.
        MaintenanceOperation::Analyze => {
            if let Ok(table) = entry.handle() {
                table.forget_statistics();
            }
            entry.note_analysis();
            line("status", "OK");
        }
        MaintenanceOperation::Optimize => {
            line("note", "Table does not support optimize, doing recreate + analyze instead");
            // Nothing need be recreated for it, so others go on using the table.
            let handle = entry.handle().map_err(|error| error.to_string());
            let done = handle.and_then(|table| {
                table.forget_statistics();
                table.compact().map_err(|error| error.to_string())
            });
            match done {
                Ok(()) => line("status", "OK"),
                Err(error) => line("error", &error),
            }
        }
        MaintenanceOperation::Repair | MaintenanceOperation::Checksum => {
            line("note", "The storage engine for the table doesn't support repair");
        }
    }
}
