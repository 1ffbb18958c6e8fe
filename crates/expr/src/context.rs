//! What an evaluation needs besides the expression and the row.

use bumpalo::Bump;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::time::Duration;
use types::convert::StoreSettings;
use types::error::ErrorCode;
use types::row::RowView;
use types::{CollationId, Level, SqlError, SqlMode, TimeZone, Timestamp, Value, ValueRef, Warning};

/// A row as expressions see it: values by position.
pub trait Columns {
    /// The value of a column; NULL for a position that does not exist.
    fn column(&self, position: usize) -> ValueRef<'_>;
}

impl Columns for RowView<'_> {
    #[inline]
    fn column(&self, position: usize) -> ValueRef<'_> {
        self.get(position)
    }
}

impl Columns for [ValueRef<'_>] {
    #[inline]
    fn column(&self, position: usize) -> ValueRef<'_> {
        self.get(position).copied().unwrap_or(ValueRef::Null)
    }
}

impl Columns for Vec<ValueRef<'_>> {
    #[inline]
    fn column(&self, position: usize) -> ValueRef<'_> {
        self.as_slice().column(position)
    }
}

impl Columns for [Value] {
    #[inline]
    fn column(&self, position: usize) -> ValueRef<'_> {
        self.get(position).map_or(ValueRef::Null, Value::as_ref)
    }
}

impl Columns for Vec<Value> {
    #[inline]
    fn column(&self, position: usize) -> ValueRef<'_> {
        self.as_slice().column(position)
    }
}

/// A row without columns, for constant expressions.
#[derive(Clone, Copy, Debug)]
pub struct NoColumns;

impl Columns for NoColumns {
    fn column(&self, _position: usize) -> ValueRef<'_> {
        ValueRef::Null
    }
}

/// Settings of the session that expressions depend on.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// sql_mode.
    pub sql_mode: SqlMode,
    /// collation_connection.
    pub collation: CollationId,
    /// time_zone.
    pub time_zone: TimeZone,
    /// div_precision_increment.
    pub div_precision_increment: u8,
    /// default_week_format.
    pub default_week_format: u32,
    /// max_error_count: most warnings of a statement that are kept.
    pub warnings_max: usize,
    /// group_concat_max_len, bytes.
    pub group_concat_max_len: usize,
    /// max_allowed_packet, bytes: longest string a function may make.
    pub max_allowed_packet: usize,
    /// foreign_key_checks.
    pub foreign_key_checks: bool,
    /// innodb_compression_default: CREATE TABLE compresses unless told otherwise.
    pub compress_tables: bool,
    /// innodb_strict_mode: a KEY_BLOCK_SIZE that cannot be is an error, not ignored.
    pub strict_table_options: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sql_mode: SqlMode::DEFAULT,
            collation: CollationId::UTF8MB4_GENERAL_CI,
            time_zone: TimeZone::System,
            div_precision_increment: 4,
            default_week_format: 0,
            warnings_max: 64,
            group_concat_max_len: 1 << 20,
            max_allowed_packet: 16 << 20,
            foreign_key_checks: true,
            compress_tables: false,
            strict_table_options: true,
        }
    }
}

/// What the information functions answer.
#[derive(Clone, Debug, Default)]
pub struct SessionFacts {
    /// CONNECTION_ID().
    pub connection_id: u64,
    /// DATABASE().
    pub database: Option<String>,
    /// USER().
    pub user: String,
    /// CURRENT_USER().
    pub current_user: String,
    /// CURRENT_ROLE().
    pub current_role: Option<String>,
    /// VERSION().
    pub version: String,
    /// LAST_INSERT_ID() of the previous statement.
    pub last_insert_id: u64,
    /// FOUND_ROWS().
    pub found_rows: u64,
    /// ROW_COUNT().
    pub row_count: i64,
}

/// What expressions need of the world outside: the session supplies it.
pub trait Hooks: std::fmt::Debug + Send {
    /// The time now, for SYSDATE.
    fn now(&self) -> Timestamp;
    /// Waits; false if it was interrupted, an error if the statement was killed.
    fn sleep(&self, duration: Duration) -> Result<bool, SqlError>;
    /// Takes a named lock for the session; false if the time was over before it was free.
    fn get_lock(&self, _name: &str, _timeout: Duration) -> Result<bool, SqlError> {
        Ok(true)
    }
    /// Gives a named lock back: whether it was the session's, `None` if nobody has it.
    fn release_lock(&self, _name: &str) -> Option<bool> {
        None
    }
    /// The connection that has a named lock.
    fn lock_owner(&self, _name: &str) -> Option<u64> {
        None
    }
    /// Gives all named locks of the session back; how many there were.
    fn release_all_locks(&self) -> u64 {
        0
    }
    /// A long computation lets others run; an error if the statement was killed.
    fn breathe(&self) -> Result<(), SqlError> {
        Ok(())
    }
}

/// A world in which time stands still at the statement's start.
#[derive(Clone, Copy, Debug)]
struct NoHooks;

impl Hooks for NoHooks {
    fn now(&self) -> Timestamp {
        Timestamp::ZERO
    }

    fn sleep(&self, _duration: Duration) -> Result<bool, SqlError> {
        Ok(true)
    }
}

/// A user variable: its value and the type it was assigned with.
#[derive(Clone, Debug)]
pub struct UserVariable {
    /// Value.
    pub value: Value,
    /// Type.
    pub result: crate::ResultType,
}

/// Everything an evaluation reads and writes besides the row. One for each session, kept over
/// its statements; not shared between threads.
///
/// Text that functions make lives in `arena` until [`EvalContext::reset_arena`], which the
/// executor calls between rows.
#[derive(Debug)]
pub struct EvalContext {
    /// Settings of the session.
    pub settings: Settings,
    /// Answers of information functions.
    pub facts: SessionFacts,
    /// Start of the statement, what NOW() says.
    pub now: Timestamp,
    /// Parameters of the prepared statement.
    pub parameters: Vec<Value>,
    /// User variables by lower-case name.
    pub variables: RefCell<HashMap<String, UserVariable>>,
    /// Memory for text made during evaluation.
    pub arena: Bump,
    /// LAST_INSERT_ID(value) called in this statement.
    pub assigned_insert_id: Cell<Option<u64>>,
    /// Raises warnings to errors: a strict INSERT, UPDATE or DELETE.
    pub warnings_are_errors: Cell<bool>,
    /// Row number for messages, from 1.
    pub row_number: Cell<u64>,
    /// Source of random numbers for RAND() and UUID().
    pub random: RefCell<RandomState>,
    /// Clock and waits.
    pub hooks: Box<dyn Hooks>,
    /// Addresses of the converted constants that have warned in this statement.
    warned: RefCell<HashSet<usize>>,
    /// Values of converted parameters in this statement, by address.
    converted: RefCell<HashMap<usize, Value>>,
    warnings: RefCell<Warnings>,
    /// Patterns of REGEXP, compiled.
    pub(crate) patterns: RefCell<Vec<crate::functions::Pattern>>,
}

impl Default for EvalContext {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            facts: SessionFacts::default(),
            now: Timestamp::ZERO,
            parameters: Vec::new(),
            variables: RefCell::default(),
            arena: Bump::new(),
            assigned_insert_id: Cell::new(None),
            warnings_are_errors: Cell::new(false),
            row_number: Cell::new(0),
            random: RefCell::default(),
            hooks: Box::new(NoHooks),
            warned: RefCell::default(),
            converted: RefCell::default(),
            warnings: RefCell::default(),
            patterns: RefCell::default(),
        }
    }
}

/// State of the random functions: two numbers as the server's generator keeps them.
#[derive(Clone, Debug, Default)]
pub struct RandomState {
    /// Generator of RAND() without argument.
    pub session: crate::functions::RandomGenerator,
    /// Generators of `RAND(n)` with a constant seed, by the address of the call.
    pub seeded: HashMap<usize, crate::functions::RandomGenerator>,
    /// Counter and node for UUID().
    pub uuid_sequence: u64,
}

#[derive(Debug, Default)]
struct Warnings {
    kept: Vec<Warning>,
    count: u64,
    errors: u64,
}

impl EvalContext {
    /// A context with default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a statement at `now`: forgets warnings, seeds and arena.
    pub fn begin_statement(&mut self, now: Timestamp) {
        self.now = now;
        self.assigned_insert_id.set(None);
        self.warnings_are_errors.set(false);
        self.row_number.set(0);
        self.random.get_mut().seeded.clear();
        self.warned.get_mut().clear();
        self.converted.get_mut().clear();
        self.clear_warnings();
        self.reset_arena();
    }

    /// Gives back the memory of text made so far.
    pub fn reset_arena(&mut self) {
        self.arena.reset();
    }

    /// Copies bytes into the arena.
    pub fn keep(&self, bytes: &[u8]) -> &[u8] {
        self.arena.alloc_slice_copy(bytes)
    }

    /// Forgets all warnings.
    pub fn clear_warnings(&self) {
        if self.warning_count() > 0 {
            *self.warnings.borrow_mut() = Warnings::default();
        }
    }

    /// Warns, or fails where warnings are errors.
    pub fn warn(&self, code: &ErrorCode, arguments: &[&dyn Display]) -> Result<(), SqlError> {
        if self.warnings_are_errors.get() {
            return Err(SqlError::new(code, arguments));
        }
        self.push_warning(Warning::new(code, arguments));
        Ok(())
    }

    /// Gives a warning of the general state (HY000), or fails with it where warnings are errors.
    pub fn raise(&self, warning: Warning) -> Result<(), SqlError> {
        if self.warnings_are_errors.get() {
            let Warning { code, message, .. } = warning;
            return Err(SqlError { code, sqlstate: *b"HY000", message });
        }
        self.push_warning(warning);
        Ok(())
    }

    /// Whether an expression is evaluated for the first time in this statement.
    pub(crate) fn is_first_evaluation(&self, expr: &crate::Expr) -> bool {
        self.warned.borrow_mut().insert(std::ptr::from_ref(expr) as usize)
    }

    /// The value of a converted parameter: made at its first evaluation in this statement. It
    /// is a number, a date or a time.
    pub(crate) fn converted<'a>(
        &'a self,
        original: &crate::Expr,
        convert: impl FnOnce(&crate::Expr) -> Result<Value, SqlError>,
    ) -> Result<ValueRef<'a>, SqlError> {
        let address = std::ptr::from_ref(original) as usize;
        if let Some(value) = self.converted.borrow().get(&address) {
            return Ok(detached(value));
        }
        let value = convert(original)?;
        let result = detached(&value);
        self.converted.borrow_mut().insert(address, value);
        Ok(result)
    }

    /// Adds a note, never an error.
    pub fn note(&self, code: &ErrorCode, arguments: &[&dyn Display]) {
        self.push_warning(Warning::note(code, arguments));
    }

    /// Adds a warning made elsewhere.
    pub fn push_warning(&self, warning: Warning) {
        let mut warnings = self.warnings.borrow_mut();
        warnings.count += 1;
        warnings.errors += u64::from(warning.level == Level::Error);
        if warnings.kept.len() < self.settings.warnings_max {
            warnings.kept.push(warning);
        }
    }

    /// Forgets the warnings after the first `count`.
    pub fn drop_warnings_after(&self, count: u64) {
        let mut warnings = self.warnings.borrow_mut();
        warnings.count = count;
        let kept = warnings.kept.len().min(count as usize);
        warnings.kept.truncate(kept);
        warnings.errors = warnings.kept.iter().filter(|w| w.level == Level::Error).count() as u64;
    }

    /// The warnings kept, in order.
    pub fn warnings(&self) -> Vec<Warning> {
        self.warnings.borrow().kept.clone()
    }

    /// Number of warnings, those not kept included (@@warning_count).
    pub fn warning_count(&self) -> u64 {
        self.warnings.borrow().count
    }

    /// Number of errors among them (@@error_count).
    pub fn error_count(&self) -> u64 {
        self.warnings.borrow().errors
    }

    /// What storing into columns depends on.
    pub fn store_settings(&self) -> StoreSettings {
        StoreSettings {
            sql_mode: self.settings.sql_mode,
            time_zone: self.settings.time_zone,
            now: self.now,
        }
    }

    /// The time now, the statement's start where there is no clock.
    pub(crate) fn clock(&self) -> Timestamp {
        self.hooks.now().max(self.now)
    }

    /// The statement's start on the session's clock.
    pub fn local_now(&self) -> types::DateTime {
        self.settings.time_zone.to_local(self.now)
    }
}

/// A value without bytes, free of what it was borrowed from; NULL for bytes.
pub(crate) fn detached<'a>(value: &Value) -> ValueRef<'a> {
    match *value {
        Value::Null | Value::Bytes(_) => ValueRef::Null,
        Value::Int(v) => ValueRef::Int(v),
        Value::UInt(v) => ValueRef::UInt(v),
        Value::Float(v) => ValueRef::Float(v),
        Value::Double(v) => ValueRef::Double(v),
        Value::Decimal(v) => ValueRef::Decimal(v),
        Value::Date(v) => ValueRef::Date(v),
        Value::DateTime(v) => ValueRef::DateTime(v),
        Value::Timestamp(v) => ValueRef::Timestamp(v),
        Value::Time(v) => ValueRef::Time(v),
    }
}
