//! Values of variables: checking what SET gives, keeping what was set.

use super::text::{flags_of, shown};
use super::{Definition, Kind, Origin, registry};
use engine_api::FlushPolicy;
use runtime::sync::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use types::error::{SqlError, Warning, codes};
use types::{CollationId, ColumnType, TypeKind, Value};

/// A variable's value.
#[derive(Clone, Debug, PartialEq)]
pub enum VariableValue {
    /// NULL, for the few texts that allow it.
    Null,
    /// ON or OFF; 1 or 0 in a SELECT.
    Boolean(bool),
    /// Signed.
    Integer(i64),
    /// Unsigned.
    Unsigned(u64),
    /// Floating point.
    Double(f64),
    /// Text, also of enumerations and sets.
    Text(Arc<str>),
}

/// What SET assigns.
#[derive(Clone, Debug)]
pub enum SetInput {
    /// DEFAULT.
    Default,
    /// A value; a bare word is text.
    Value(Value),
}

impl VariableValue {
    /// A text.
    pub fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    /// As SHOW VARIABLES prints it; NULL is empty.
    pub fn show(&self) -> String {
        match self {
            Self::Null => String::new(),
            Self::Boolean(on) => if *on { "ON" } else { "OFF" }.to_owned(),
            Self::Integer(number) => number.to_string(),
            Self::Unsigned(number) => number.to_string(),
            Self::Double(number) => format!("{number:.6}"),
            Self::Text(text) => text.to_string(),
        }
    }

    /// As `SELECT @@name` gives it.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Boolean(on) => Value::Int(i64::from(*on)),
            Self::Integer(number) => Value::Int(*number),
            Self::Unsigned(number) => Value::UInt(*number),
            Self::Double(number) => Value::Double(*number),
            Self::Text(text) => Value::Bytes(text.as_bytes().to_vec()),
        }
    }

    /// The type of `SELECT @@name`.
    pub fn column_type(&self) -> ColumnType {
        let number = |kind, unsigned, length, scale| ColumnType {
            kind,
            unsigned,
            zerofill: false,
            length,
            precision: 0,
            scale,
            collation: CollationId::BINARY,
            members: None,
        };
        match self {
            Self::Boolean(_) => number(TypeKind::BigInt, false, 1, 0),
            Self::Integer(_) => number(TypeKind::BigInt, false, 21, 0),
            Self::Unsigned(_) => number(TypeKind::BigInt, true, 21, 0),
            Self::Double(_) => number(TypeKind::Double, false, 23, 6),
            Self::Null | Self::Text(_) => ColumnType {
                collation: CollationId::UTF8MB4_GENERAL_CI,
                ..number(TypeKind::VarChar, false, self.show().chars().count() as u32, 0)
            },
        }
    }

    /// On, or a number other than zero.
    pub fn is_on(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Boolean(on) => *on,
            Self::Integer(number) => *number != 0,
            Self::Unsigned(number) => *number != 0,
            Self::Double(number) => *number != 0.0,
            Self::Text(text) => &**text == "ON" || &**text == "1",
        }
    }

    /// A number; zero for text.
    pub fn number(&self) -> u64 {
        match self {
            Self::Unsigned(number) => *number,
            Self::Integer(number) => u64::try_from(*number).unwrap_or(0),
            Self::Boolean(on) => u64::from(*on),
            Self::Double(number) => *number as u64,
            Self::Null | Self::Text(_) => 0,
        }
    }
}

impl Definition {
    /// The value to store for what SET gives; numbers out of range are clamped with a warning.
    /// `default` is what DEFAULT means (the global value for a session variable).
    pub fn check(
        &self,
        input: &SetInput,
        default: &VariableValue,
        warnings: &mut Vec<Warning>,
    ) -> Result<VariableValue, SqlError> {
        let value = match input {
            SetInput::Default => return Ok(default.clone()),
            SetInput::Value(value) => value,
        };
        let checked = self.check_kind(value, default, warnings)?;
        match self.is_fixed && checked != self.default {
            true => Err(self.wrong_value(value)),
            false => Ok(checked),
        }
    }

    fn check_kind(
        &self,
        value: &Value,
        default: &VariableValue,
        warnings: &mut Vec<Warning>,
    ) -> Result<VariableValue, SqlError> {
        match self.kind {
            Kind::Boolean => self.check_boolean(value),
            Kind::Integer => self.check_integer(value, warnings),
            Kind::Unsigned => self.check_unsigned(value, warnings),
            Kind::Double => self.check_double(value, warnings),
            Kind::Text => self.check_text(value),
            Kind::Enumeration => self.check_enumeration(value),
            Kind::Set => self.check_set(value),
            Kind::Flags => self.check_flags(value, default),
        }
    }

    fn wrong_value(&self, value: &Value) -> SqlError {
        SqlError::new(&codes::WRONG_VALUE_FOR_VAR, &[&self.name, &shown(value)])
    }

    fn wrong_type(&self) -> SqlError {
        SqlError::new(&codes::WRONG_TYPE_FOR_VAR, &[&self.name])
    }

    fn check_boolean(&self, value: &Value) -> Result<VariableValue, SqlError> {
        let on = match value {
            Value::Int(number @ (0 | 1)) => *number == 1,
            Value::UInt(number @ (0 | 1)) => *number == 1,
            Value::Bytes(word) if word.eq_ignore_ascii_case(b"on") => true,
            Value::Bytes(word) if word.eq_ignore_ascii_case(b"off") => false,
            Value::Decimal(_) | Value::Double(_) | Value::Float(_) => {
                return Err(self.wrong_type());
            }
            other => return Err(self.wrong_value(other)),
        };
        Ok(VariableValue::Boolean(on))
    }

    fn integer(&self, value: &Value) -> Result<i128, SqlError> {
        match value {
            Value::Int(number) => Ok(i128::from(*number)),
            Value::UInt(number) => Ok(i128::from(*number)),
            _ => Err(self.wrong_type()),
        }
    }

    fn warn_if(&self, changed: bool, given: &Value, warnings: &mut Vec<Warning>) {
        if changed {
            let arguments: [&dyn std::fmt::Display; 2] = [&self.name, &shown(given)];
            warnings.push(Warning::new(&codes::TRUNCATED_WRONG_VALUE, &arguments));
        }
    }

    fn check_integer(
        &self,
        value: &Value,
        warnings: &mut Vec<Warning>,
    ) -> Result<VariableValue, SqlError> {
        let given = self.integer(value)?;
        let clamped = given.clamp(self.minimum as i128, self.maximum as i128);
        self.warn_if(clamped != given, value, warnings);
        Ok(VariableValue::Integer(clamped as i64))
    }

    fn check_unsigned(
        &self,
        value: &Value,
        warnings: &mut Vec<Warning>,
    ) -> Result<VariableValue, SqlError> {
        let given = self.integer(value)?;
        let maximum = i128::from(self.maximum_exact);
        let mut clamped = given.clamp(self.minimum as i128, maximum);
        if self.block > 1 {
            clamped -= clamped % i128::from(self.block);
        }
        self.warn_if(clamped != given, value, warnings);
        Ok(VariableValue::Unsigned(clamped as u64))
    }

    fn check_double(
        &self,
        value: &Value,
        warnings: &mut Vec<Warning>,
    ) -> Result<VariableValue, SqlError> {
        let given = match value {
            Value::Int(number) => *number as f64,
            Value::UInt(number) => *number as f64,
            Value::Double(number) => *number,
            Value::Float(number) => f64::from(*number),
            Value::Decimal(number) => number.to_f64(),
            _ => return Err(self.wrong_type()),
        };
        let clamped = given.clamp(self.minimum, self.maximum);
        self.warn_if(clamped != given, &Value::Double(given), warnings);
        Ok(VariableValue::Double(clamped))
    }

    fn check_text(&self, value: &Value) -> Result<VariableValue, SqlError> {
        match value {
            Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(VariableValue::text(text)),
                Err(_) => Err(self.wrong_value(value)),
            },
            Value::Null => Ok(VariableValue::Null),
            _ => Err(self.wrong_type()),
        }
    }

    /// The word meant by text or by its number.
    fn word(&self, value: &Value) -> Result<&'static str, SqlError> {
        let number = match value {
            Value::Bytes(text) => {
                let found = self.words.iter().find(|w| w.as_bytes().eq_ignore_ascii_case(text));
                return found.copied().ok_or_else(|| self.wrong_value(value));
            }
            Value::Int(number) => usize::try_from(*number).ok(),
            Value::UInt(number) => usize::try_from(*number).ok(),
            Value::Null => None,
            _ => return Err(self.wrong_type()),
        };
        let word = number.and_then(|position| self.words.get(position));
        word.copied().ok_or_else(|| self.wrong_value(value))
    }

    fn check_enumeration(&self, value: &Value) -> Result<VariableValue, SqlError> {
        self.word(value).map(VariableValue::text)
    }

    fn check_set(&self, value: &Value) -> Result<VariableValue, SqlError> {
        let mut bits = match value {
            Value::Int(number) if *number >= 0 => *number as u64,
            Value::UInt(number) => *number,
            Value::Bytes(text) => {
                let mut bits = 0;
                for part in text.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
                    if part.is_empty() {
                        continue;
                    }
                    let same = |word: &&str| word.as_bytes().eq_ignore_ascii_case(part);
                    let Some(position) = self.words.iter().position(same) else {
                        return Err(self.wrong_value(&Value::Bytes(part.to_vec())));
                    };
                    bits |= 1 << position;
                }
                bits
            }
            Value::Decimal(_) | Value::Double(_) | Value::Float(_) => {
                return Err(self.wrong_type());
            }
            other => return Err(self.wrong_value(other)),
        };
        if self.words.len() < 64 && bits >> self.words.len() != 0 {
            return Err(self.wrong_value(value));
        }
        if self.name == "sql_mode" {
            bits = types::SqlMode(bits).expanded().0;
        }
        let words = self.words.iter().enumerate();
        let chosen: Vec<_> = words.filter(|(i, _)| bits >> i & 1 != 0).map(|(_, w)| *w).collect();
        Ok(VariableValue::text(&chosen.join(",")))
    }

    /// `name=on|off|default,...` changes the named flags of the present value.
    fn check_flags(
        &self,
        value: &Value,
        default: &VariableValue,
    ) -> Result<VariableValue, SqlError> {
        let text = match value {
            Value::Bytes(text) => text,
            Value::Null => return Err(self.wrong_value(value)),
            _ => return Err(self.wrong_type()),
        };
        let defaults = flags_of(&self.default.show());
        let mut flags = flags_of(&default.show());
        let given = String::from_utf8_lossy(text).to_ascii_lowercase();
        let mut named = Vec::new();
        for part in given.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            if part == "default" {
                let unnamed = (0..flags.len()).filter(|place| !named.contains(place));
                unnamed.for_each(|place| flags[place] = defaults[place].clone());
                continue;
            }
            let wrong = || self.wrong_value(&Value::text(part));
            let (name, state) = part.split_once('=').ok_or_else(wrong)?;
            let place = flags.iter().position(|(known, _)| known == name).ok_or_else(wrong)?;
            if named.contains(&place) {
                return Err(wrong());
            }
            named.push(place);
            let flag = &mut flags[place];
            match state {
                "on" | "off" => flag.1 = state.to_owned(),
                "default" => flag.1.clone_from(&defaults[place].1),
                _ => return Err(wrong()),
            }
        }
        let pairs: Vec<_> = flags.iter().map(|(name, state)| format!("{name}={state}")).collect();
        Ok(VariableValue::text(&pairs.join(",")))
    }
}

/// The server's values.
pub struct GlobalVariables {
    values: RwLock<Arc<Vec<VariableValue>>>,
    origins: RwLock<Vec<Origin>>,
    /// innodb_flush_log_at_trx_commit, which every transaction reads.
    flush_log: AtomicU64,
}

const FLUSH_LOG: &str = "innodb_flush_log_at_trx_commit";

impl Default for GlobalVariables {
    fn default() -> Self {
        let values = registry().iter().map(|definition| definition.default.clone()).collect();
        let globals = Self {
            values: RwLock::new(Arc::new(values)),
            origins: RwLock::new(vec![Origin::Compiled; registry().len()]),
            flush_log: AtomicU64::new(1),
        };
        globals.note_changes();
        globals
    }
}

impl GlobalVariables {
    /// The present value.
    pub fn get(&self, definition: &Definition) -> VariableValue {
        self.values.read()[definition.index].clone()
    }

    /// The present value of a variable that this crate relies on.
    pub fn value(&self, name: &'static str) -> VariableValue {
        self.values.read()[registry().position(name)].clone()
    }

    /// Stores a checked value that a statement set.
    pub fn set(&self, definition: &Definition, value: VariableValue) {
        self.store(definition.index, value, Origin::Statement);
    }

    /// Stores a checked value that an option gave.
    pub fn set_option(&self, name: &'static str, value: VariableValue) {
        self.store(registry().position(name), value, Origin::Option);
    }

    /// Where the present value comes from.
    pub fn origin(&self, definition: &Definition) -> Origin {
        self.origins.read()[definition.index]
    }

    fn store(&self, position: usize, value: VariableValue, origin: Origin) {
        Arc::make_mut(&mut self.values.write())[position] = value;
        self.origins.write()[position] = origin;
        self.note_changes();
    }

    /// Stores a value that the server itself knows (version, port, directories).
    pub fn set_known(&self, name: &'static str, value: VariableValue) {
        self.store(registry().position(name), value, Origin::Server);
    }

    fn note_changes(&self) {
        self.flush_log.store(self.value(FLUSH_LOG).number(), Ordering::Relaxed);
    }

    /// When commits are written and synced.
    pub fn flush_policy(&self) -> FlushPolicy {
        match self.flush_log.load(Ordering::Relaxed) {
            0 => FlushPolicy::EverySecond,
            2 => FlushPolicy::WriteOnly,
            _ => FlushPolicy::Synchronous,
        }
    }

    /// The values a new session starts with.
    pub fn session(&self) -> SessionVariables {
        SessionVariables {
            shared: self.values.read().clone(),
            own: Vec::new(),
            results_collation: None,
        }
    }
}

/// A session's values: those that were global when it began, and what it has changed since. The
/// unchanged ones are shared by all sessions.
#[derive(Clone)]
pub struct SessionVariables {
    shared: Arc<Vec<VariableValue>>,
    /// Own values that differ from the shared ones, by position in the registry, in order.
    own: Vec<(u32, VariableValue)>,
    /// Collation by which columns of results are described, where it is not the default one of
    /// character_set_results: no variable shows it, the handshake and SET NAMES set it.
    pub results_collation: Option<types::CollationId>,
}

impl SessionVariables {
    fn at(&self, position: usize) -> &VariableValue {
        match self.own.binary_search_by_key(&(position as u32), |own| own.0) {
            Ok(place) => &self.own[place].1,
            Err(_) => &self.shared[position],
        }
    }

    fn put(&mut self, position: usize, value: VariableValue) {
        let is_shared = self.shared[position] == value;
        match self.own.binary_search_by_key(&(position as u32), |own| own.0) {
            Ok(place) if is_shared => {
                self.own.remove(place);
            }
            Ok(place) => self.own[place].1 = value,
            Err(_) if is_shared => {}
            Err(place) => {
                self.own.reserve_exact(1);
                self.own.insert(place, (position as u32, value));
            }
        }
    }

    /// The present value.
    pub fn get(&self, definition: &Definition) -> &VariableValue {
        self.at(definition.index)
    }

    /// The present value of a variable that this crate relies on.
    pub fn value(&self, name: &'static str) -> &VariableValue {
        self.at(registry().position(name))
    }

    /// Stores a checked value.
    pub fn set(&mut self, definition: &Definition, value: VariableValue) {
        self.put(definition.index, value);
    }

    /// Stores the value of a variable that this crate relies on.
    pub fn set_known(&mut self, name: &'static str, value: VariableValue) {
        self.put(registry().position(name), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, value: Value) -> (Result<String, u16>, usize) {
        let definition = registry().find(name).unwrap();
        let mut warnings = Vec::new();
        let input = SetInput::Value(value);
        let result = definition.check(&input, &definition.default, &mut warnings);
        (result.map(|v| v.show()).map_err(|e| e.code), warnings.len())
    }

    fn ok(text: &str) -> (Result<String, u16>, usize) {
        (Ok(text.to_owned()), 0)
    }

    #[test]
    fn booleans_take_words_and_one_and_zero() {
        assert_eq!(set("autocommit", Value::Int(0)), ok("OFF"));
        assert_eq!(set("autocommit", Value::text("oN")), ok("ON"));
        assert_eq!(set("autocommit", Value::Int(2)), (Err(1231), 0));
        assert_eq!(set("autocommit", Value::Double(1.0)), (Err(1232), 0));
        assert_eq!(set("autocommit", Value::Null), (Err(1231), 0));
    }

    #[test]
    fn numbers_are_clamped_with_a_warning() {
        assert_eq!(set("lock_wait_timeout", Value::Int(-1)), (Ok("0".to_owned()), 1));
        assert_eq!(set("max_allowed_packet", Value::Int(5000)), (Ok("4096".to_owned()), 1));
        assert_eq!(set("lock_wait_timeout", Value::text("5")), (Err(1232), 0));
        assert_eq!(set("lock_wait_timeout", Value::Int(7)), ok("7"));
    }

    #[test]
    fn words_are_checked() {
        assert_eq!(set("tx_isolation", Value::text("read-committed")), ok("READ-COMMITTED"));
        assert_eq!(set("tx_isolation", Value::Int(3)), ok("SERIALIZABLE"));
        assert_eq!(set("tx_isolation", Value::text("CHAOS")), (Err(1231), 0));
        assert_eq!(set("sql_mode", Value::text("ansi_quotes, nope")), (Err(1231), 0));
        assert_eq!(
            set("sql_mode", Value::text("ANSI")),
            ok("REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ANSI")
        );
        assert_eq!(set("sql_mode", Value::text("")), ok(""));
    }

    #[test]
    fn flags_are_switched_one_by_one() {
        let (result, _) = set("optimizer_switch", Value::text("mrr=on"));
        assert!(result.unwrap().contains("mrr=on"));
        assert_eq!(set("optimizer_switch", Value::text("warp=on")), (Err(1231), 0));
    }

    #[test]
    fn a_session_keeps_its_copy() {
        let globals = GlobalVariables::default();
        let mut one = globals.session();
        globals.set_known("lock_wait_timeout", VariableValue::Unsigned(3));
        one.set_known("autocommit", VariableValue::Boolean(false));
        assert_eq!(one.value("lock_wait_timeout").number(), 86_400);
        assert_eq!(globals.session().value("lock_wait_timeout").number(), 3);
        assert!(globals.session().value("autocommit").is_on());
    }

    #[test]
    fn a_session_holds_only_what_it_changed() {
        let globals = GlobalVariables::default();
        let mut one = globals.session();
        one.set_known("lock_wait_timeout", VariableValue::Unsigned(86_400));
        assert!(one.own.is_empty(), "it is the global value");
        one.set_known("wait_timeout", VariableValue::Unsigned(5));
        one.set_known("lock_wait_timeout", VariableValue::Unsigned(3));
        one.set_known("autocommit", VariableValue::Boolean(false));
        one.set_known("lock_wait_timeout", VariableValue::Unsigned(4));
        assert_eq!(one.own.len(), 3);
        assert_eq!(one.value("lock_wait_timeout").number(), 4);
        assert_eq!(one.value("wait_timeout").number(), 5);
        one.set_known("lock_wait_timeout", VariableValue::Unsigned(86_400));
        one.set_known("autocommit", VariableValue::Boolean(true));
        assert_eq!(one.own.len(), 1);
        assert!(one.value("autocommit").is_on());
        globals.set_known("lock_wait_timeout", VariableValue::Unsigned(9));
        assert_eq!(one.value("lock_wait_timeout").number(), 86_400, "as when it began");
    }
}
