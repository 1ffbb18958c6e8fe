//! SET in all its forms.
//!
//! All values of one SET are found and checked before the first of its assignments takes effect.

use crate::Session;
use crate::answer::Outlet;
use crate::flushing;
use crate::monitors;
use crate::planned::SessionPlan;
use crate::settings::isolation_text;
use crate::statement::{Answer, Failure, Run};
use crate::variables::{Definition, Kind, Scope, SetInput, VariableValue, registry};
use catalog::Privilege;
use engine_api::Isolation;
use std::sync::Arc;
use syntax::ast::{
    Expression, IsolationLevel, SetItem, SetTransaction, SetValue, Statement, VariableScope,
};
use types::{
    Charset, CollationId, SqlError, TimeZone, Timestamp, Value, Warning, codes, collation,
};
use wire::response::SessionChange;

/// A checked assignment.
enum Assignment {
    Global(&'static Definition, VariableValue),
    Session(&'static Definition, VariableValue),
    Names(Charset, CollationId),
    /// SET CHARACTER SET: client and results, the connection follows the database.
    CharacterSet(Charset),
    Password(Box<SetItem>),
    /// SET ROLE, SET DEFAULT ROLE.
    Role(Box<SetItem>),
    User(String, expr::UserVariable),
}

impl Session {
    /// SET.
    pub(crate) fn set(&mut self, items: &[SetItem]) -> Result<(), SqlError> {
        let mut assignments = Vec::new();
        for item in items {
            if let Some(assignment) = self.check_item(item)? {
                assignments.push(assignment);
            }
        }
        let mut is_own = false;
        for assignment in assignments {
            is_own |= !matches!(assignment, Assignment::Global(..) | Assignment::Password(_));
            self.assign(assignment)?;
        }
        self.apply_settings();
        if is_own {
            self.tell_state();
        }
        Ok(())
    }

    fn check_item(&mut self, item: &SetItem) -> Result<Option<Assignment>, SqlError> {
        match item {
            SetItem::User { name, value } => {
                let variable = self.user_variable_of(value)?;
                Ok(Some(Assignment::User(name.to_lowercase(), variable)))
            }
            SetItem::System { scope, instance, name, value } => {
                if instance.is_some() {
                    return Err(SqlError::new(&codes::UNKNOWN_SYSTEM_VARIABLE, &[name]));
                }
                self.check_system(*scope, name, value).map(Some)
            }
            SetItem::Names { charset, collation } => {
                let default = self.settings_default_charset();
                let charset = charset.as_deref().map_or(Ok(default), find_charset)?;
                let chosen = match collation {
                    None => collation::default_of(charset).id,
                    Some(name) => {
                        let found = collation::by_name(name);
                        let unknown = || SqlError::new(&codes::UNKNOWN_COLLATION, &[name]);
                        let found = found.ok_or_else(unknown)?;
                        if found.charset != charset {
                            let arguments: [&dyn std::fmt::Display; 2] =
                                [&found.name, &charset.name()];
                            let code = &codes::COLLATION_CHARSET_MISMATCH;
                            return Err(SqlError::new(code, &arguments));
                        }
                        found.id
                    }
                };
                Ok(Some(Assignment::Names(charset, chosen)))
            }
            SetItem::CharacterSet(charset) => {
                let default = self.settings_default_charset();
                let charset = charset.as_deref().map_or(Ok(default), find_charset)?;
                Ok(Some(Assignment::CharacterSet(charset)))
            }
            SetItem::Password { .. } => Ok(Some(Assignment::Password(Box::new(item.clone())))),
            SetItem::Role(_) | SetItem::DefaultRole { .. } => {
                Ok(Some(Assignment::Role(Box::new(item.clone()))))
            }
        }
    }

    fn settings_default_charset(&self) -> Charset {
        let text = self.server.globals.value("character_set_client").show();
        Charset::by_name(&text).unwrap_or(Charset::Utf8mb4)
    }

    fn check_system(
        &mut self,
        scope: VariableScope,
        name: &str,
        value: &SetValue,
    ) -> Result<Assignment, SqlError> {
        let unknown = || SqlError::new(&codes::UNKNOWN_SYSTEM_VARIABLE, &[&name]);
        let definition = registry().find(name).ok_or_else(unknown)?;
        let name = definition.name;
        let global = scope == VariableScope::Global;
        if definition.read_only {
            let arguments: [&dyn std::fmt::Display; 2] = [&name, &"read only"];
            return Err(SqlError::new(&codes::INCORRECT_GLOBAL_LOCAL_VAR, &arguments));
        }
        match (definition.scope, global) {
            (Scope::Global, false) => {
                return Err(SqlError::new(&codes::GLOBAL_VARIABLE, &[&name]));
            }
            (Scope::SessionOnly, true) => {
                return Err(SqlError::new(&codes::LOCAL_VARIABLE, &[&name]));
            }
            _ => {}
        }
        if global {
            self.require_global(Privilege::Super)?;
        }
        let input = self.set_input(value)?;
        if let (SetInput::Default, true) = (&input, has_no_default(name)) {
            return Err(SqlError::new(&codes::NO_DEFAULT, &[&name]));
        }
        let default = match (global, definition.scope) {
            (false, Scope::Session) => self.server.globals.get(definition),
            _ => definition.default.clone(),
        };
        let is_default = matches!(input, SetInput::Default);
        let present = match (global, &definition.kind) {
            _ if is_default => default,
            (false, Kind::Flags) => self.variables.get(definition).clone(),
            (true, Kind::Flags) => self.server.globals.get(definition),
            _ => default,
        };
        let mut warnings = Vec::new();
        let value = definition.check(&input, &present, &mut warnings)?;
        if !global && has_read_only_session_value(name) {
            let arguments: [&dyn std::fmt::Display; 3] = [&"SESSION", &name, &"GLOBAL"];
            return Err(SqlError::new(&codes::VARIABLE_IS_READONLY, &arguments));
        }
        let value = check_special(definition, value, &input)?;
        warnings.into_iter().for_each(|warning: Warning| self.eval.push_warning(warning));
        Ok(match global {
            true => Assignment::Global(definition, value),
            false => Assignment::Session(definition, value),
        })
    }

    fn set_input(&mut self, value: &SetValue) -> Result<SetInput, SqlError> {
        Ok(match value {
            SetValue::Default => SetInput::Default,
            SetValue::Word(word) => SetInput::Value(Value::text(word)),
            SetValue::Expression(expression) => SetInput::Value(self.constant(expression)?.0),
        })
    }

    fn assign(&mut self, assignment: Assignment) -> Result<(), SqlError> {
        match assignment {
            Assignment::Global(definition, value) => {
                let value = match definition.name {
                    // The workers are there from the start to the end.
                    "thread_pool_size" => self.present_workers(&value),
                    _ => value,
                };
                let (value, told) = flushing::keep_pairs(&self.server, definition, value);
                let told = told.into_iter().chain(flushing::note(definition));
                let told =
                    told.chain(monitors::apply(&self.server, definition.name, &value.show()));
                told.for_each(|warning| self.eval.push_warning(warning));
                self.server.globals.set(definition, value);
                if definition.name == "innodb_max_dirty_pages_pct" {
                    self.server.apply_flushing();
                }
                if definition.name == "innodb_read_only_compressed" {
                    self.server.apply_read_only_compressed();
                }
                if definition.name.starts_with("thread_pool_") {
                    self.server.apply_admission();
                }
                if definition.name.starts_with("innodb_compression_") {
                    self.server.apply_compression();
                }
                Ok(())
            }
            Assignment::Session(definition, value) => self.assign_session(definition, value),
            Assignment::Names(charset, collation) => {
                self.set_names(charset, collation);
                Ok(())
            }
            Assignment::CharacterSet(charset) => {
                let database = self.variables.value("collation_database").show();
                let collation = collation::by_name(&database)
                    .map_or(CollationId::UTF8MB4_GENERAL_CI, |collation| collation.id);
                self.set_text("character_set_client", charset.name());
                self.set_text("character_set_results", charset.name());
                self.set_text("collation_connection", collation.name());
                self.set_text("character_set_connection", collation.charset().name());
                Ok(())
            }
            Assignment::Password(item) => self.set_password(&item),
            Assignment::Role(item) => match *item {
                SetItem::DefaultRole { role, account } => {
                    self.set_default_role(role.as_deref(), account.as_ref())
                }
                SetItem::Role(role) => self.set_role(role.as_deref()),
                _ => Ok(()),
            },
            Assignment::User(name, variable) => {
                self.eval.variables.get_mut().insert(name, variable);
                Ok(())
            }
        }
    }

    fn present_workers(&mut self, wanted: &VariableValue) -> VariableValue {
        let workers = VariableValue::Unsigned(runtime::worker_count() as u64);
        // A value out of range has its warning already.
        if *wanted != workers && self.eval.warning_count() == 0 {
            let shown = wanted.show();
            let arguments: [&dyn std::fmt::Display; 2] = [&"thread_pool_size", &shown];
            self.eval.push_warning(Warning::new(&codes::TRUNCATED_WRONG_VALUE, &arguments));
        }
        workers
    }

    fn set_text(&mut self, name: &'static str, value: &str) {
        self.variables.set_known(name, VariableValue::text(value));
        self.tell_variable(name);
    }

    /// SET NAMES.
    pub(crate) fn set_names(&mut self, charset: Charset, collation: CollationId) {
        for name in ["character_set_client", "character_set_connection", "character_set_results"] {
            self.set_text(name, charset.name());
        }
        self.variables.set_known("collation_connection", VariableValue::text(collation.name()));
        self.variables.results_collation = Some(collation);
        self.apply_settings();
    }

    fn assign_session(
        &mut self,
        definition: &'static Definition,
        value: VariableValue,
    ) -> Result<(), SqlError> {
        match definition.name {
            "autocommit" if value.is_on() && !self.settings.autocommit => {
                self.commit_implicitly()?
            }
            "timestamp" => {
                let micros = match value {
                    VariableValue::Double(seconds) => (seconds * 1e6).round() as i64,
                    _ => 0,
                };
                self.fixed_time = (micros != 0).then_some(Timestamp(micros));
            }
            "insert_id" => self.insert_id = value.number(),
            "last_insert_id" | "identity" => self.eval.facts.last_insert_id = value.number(),
            "tx_isolation" | "tx_read_only" if self.transaction.is_explicit() => {
                return Err(SqlError::new(&codes::CANT_CHANGE_TX_CHARACTERISTICS, &[]));
            }
            "collation_connection" => {
                let charset = collation::by_name(&value.show()).map(|c| c.charset.name());
                let charset = VariableValue::text(charset.unwrap_or("utf8mb4"));
                self.variables.set_known("character_set_connection", charset);
            }
            "character_set_connection" => {
                let charset = Charset::by_name(&value.show()).unwrap_or(Charset::Utf8mb4);
                let collation = VariableValue::text(collation::default_of(charset).name);
                self.variables.set_known("collation_connection", collation);
            }
            _ => {}
        }
        self.variables.set(definition, value);
        match definition.name {
            "autocommit" => self.settings.autocommit = self.variables.get(definition).is_on(),
            "session_track_transaction_info" => self.track_transactions(),
            "tx_isolation" => self.replace_next(true, false),
            "tx_read_only" => self.replace_next(false, true),
            _ => {}
        }
        self.tell_variable(definition.name);
        Ok(())
    }

    /// Tells a client that tracks the variable of its new value.
    fn tell_variable(&mut self, name: &'static str) {
        if self.capabilities & wire::capability::SESSION_TRACK == 0 {
            return;
        }
        let tracked = self.variables.value("session_track_system_variables").show();
        let listed = |word: &str| word.trim() == "*" || word.trim().eq_ignore_ascii_case(name);
        if tracked.split(',').any(listed) {
            let value = self.variables.value(name).show();
            self.tell(SessionChange::Variable(name, &value));
        }
    }

    /// What a user variable gets; with subqueries it is the row of a query.
    fn user_variable_of(&mut self, value: &Expression) -> Result<expr::UserVariable, SqlError> {
        let (value, result) = match self.constant(value) {
            Err(error) if error.is(&codes::NOT_SUPPORTED_YET) => self.selected(value)?,
            found => found?,
        };
        let zone = self.eval.settings.time_zone;
        Ok(expr::variable_of(value.as_ref(), &result, zone))
    }

    /// SET TRANSACTION.
    pub(crate) fn set_transaction(&mut self, set: &SetTransaction) -> Result<(), SqlError> {
        let isolation = set.isolation.map(|level| match level {
            IsolationLevel::ReadUncommitted => Isolation::ReadUncommitted,
            IsolationLevel::ReadCommitted => Isolation::ReadCommitted,
            IsolationLevel::RepeatableRead => Isolation::RepeatableRead,
            IsolationLevel::Serializable => Isolation::Serializable,
        });
        match set.scope {
            VariableScope::Default => self.set_next_transaction(isolation, set.read_only),
            VariableScope::Session => {
                if let Some(level) = isolation {
                    self.set_text("tx_isolation", isolation_text(level));
                }
                if let Some(read_only) = set.read_only {
                    let value = VariableValue::Boolean(read_only);
                    self.variables.set_known("tx_read_only", value);
                    self.tell_variable("tx_read_only");
                }
                self.replace_next(isolation.is_some(), set.read_only.is_some());
                self.apply_settings();
                self.tell_state();
                Ok(())
            }
            VariableScope::Global => {
                self.require_global(Privilege::Super)?;
                let globals = &self.server.globals;
                if let Some(level) = isolation {
                    let value = VariableValue::text(isolation_text(level));
                    globals.set(registry().known("tx_isolation"), value);
                }
                if let Some(read_only) = set.read_only {
                    let value = VariableValue::Boolean(read_only);
                    globals.set(registry().known("tx_read_only"), value);
                }
                Ok(())
            }
        }
    }

    /// SET STATEMENT ... FOR: the variables are back as they were afterwards.
    pub(crate) fn set_statement(
        &mut self,
        items: &[SetItem],
        statement: &Statement,
        run: Run,
        outlet: &mut dyn Outlet,
        planned: &mut Option<Arc<SessionPlan>>,
    ) -> Result<Answer, Failure> {
        if matches!(statement, Statement::Set(_) | Statement::SetStatement(..)) {
            return Err(SqlError::new(&codes::NOT_SUPPORTED_YET, &[&"SET STATEMENT SET"]).into());
        }
        let before = self.variables.clone();
        let fixed_time = self.fixed_time;
        self.set(items)?;
        // The limit may be among what was set.
        let _timer = self.start_timer();
        let result = self.execute_statement(statement, run, outlet, planned);
        self.variables = before;
        self.fixed_time = fixed_time;
        self.apply_settings();
        result
    }
}

/// A session has the value that was global when it began.
fn has_read_only_session_value(name: &str) -> bool {
    matches!(name, "max_allowed_packet" | "net_buffer_length" | "max_user_connections")
}

/// DEFAULT means nothing for these.
fn has_no_default(name: &str) -> bool {
    matches!(name, "last_insert_id" | "identity" | "rand_seed1" | "rand_seed2")
}

fn find_charset(name: &str) -> Result<Charset, SqlError> {
    let unknown = || SqlError::new(&codes::UNKNOWN_CHARACTER_SET, &[&name]);
    Charset::by_name(name).ok_or_else(unknown)
}

/// Checks that only some variables have; the value may be brought to its canonical form.
fn check_special(
    definition: &Definition,
    value: VariableValue,
    input: &SetInput,
) -> Result<VariableValue, SqlError> {
    let name = definition.name;
    let wrong = |shown: &str| SqlError::new(&codes::WRONG_VALUE_FOR_VAR, &[&name, &shown]);
    if name.starts_with("character_set_") {
        if value == VariableValue::Null && name == "character_set_results" {
            return Ok(value);
        }
        if let SetInput::Value(Value::Int(_) | Value::UInt(_)) = input {
            return Err(wrong(&value.show()));
        }
        return match &value {
            VariableValue::Null => Err(wrong("NULL")),
            text => Ok(VariableValue::text(find_charset(&text.show())?.name())),
        };
    }
    if name.starts_with("collation_") {
        let shown = value.show();
        let unknown = || SqlError::new(&codes::UNKNOWN_COLLATION, &[&shown]);
        let found = collation::by_name(&shown).ok_or_else(unknown)?;
        return Ok(VariableValue::text(found.name));
    }
    if let Some(kept) = monitors::check(name, &value, input)? {
        return Ok(kept);
    }
    match name {
        "time_zone" => {
            let shown = if value == VariableValue::Null { "NULL".to_owned() } else { value.show() };
            let zone = TimeZone::parse(&shown);
            let unknown = || SqlError::new(&codes::UNKNOWN_TIME_ZONE, &[&shown]);
            zone.map(|zone| VariableValue::text(&zone.to_string())).ok_or_else(unknown)
        }
        "session_track_system_variables" => {
            let shown = value.show();
            if value == VariableValue::Null {
                return Err(wrong("NULL"));
            }
            let mut names = shown.split(',').map(str::trim).filter(|_| !shown.trim().is_empty());
            match names.find(|name| *name != "*" && registry().find(name).is_none()) {
                Some(name) => Err(SqlError::new(&codes::UNKNOWN_SYSTEM_VARIABLE, &[&name])),
                None => Ok(value),
            }
        }
        "default_storage_engine" | "storage_engine" | "default_tmp_storage_engine" => {
            let shown = value.show();
            if shown.eq_ignore_ascii_case("InnoDB") {
                return Ok(VariableValue::text("InnoDB"));
            }
            Err(SqlError::new(&codes::UNKNOWN_STORAGE_ENGINE, &[&shown]))
        }
        _ => Ok(value),
    }
}
