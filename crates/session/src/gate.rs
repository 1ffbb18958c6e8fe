//! Sessions that are not free to run statements: the password has expired (1820), or the account
//! has a limit of statements per hour (1226).
//!
//! Such a session never takes the version of the catalog that it has seen for the present one:
//! the look that every command takes at it is what leads here, and others pay nothing.

use crate::Session;
use crate::statement_kind::is_update;
use catalog::{AccountAttributes, PasswordLifetime};
use runtime::Instant;
use std::time::Duration;
use syntax::ast::Statement;
use types::{SqlError, codes};
use wire::Command;

/// Takes the place of the catalog's version in a session that is not free.
pub(crate) const GATED: u64 = u64::MAX;

/// The hour of the limits.
const HOUR: Duration = Duration::from_secs(3600);

const DAY_MICROS: i64 = 86_400_000_000;

/// What an account has used up since its hour began.
pub(crate) struct Hour {
    pub(crate) began: Instant,
    pub(crate) connections: u32,
    pub(crate) queries: u32,
    pub(crate) updates: u32,
}

impl Hour {
    pub(crate) fn begin(now: Instant) -> Self {
        Self { began: now, connections: 0, queries: 0, updates: 0 }
    }

    /// Begins anew when it is over.
    pub(crate) fn look(&mut self, now: Instant) {
        if now - self.began >= HOUR {
            *self = Self::begin(now);
        }
    }
}

/// Whether the password of an account has expired.
pub(crate) fn has_expired(attributes: &AccountAttributes, default_days: u64, now: i64) -> bool {
    let days = match attributes.lifetime {
        PasswordLifetime::Never => 0,
        PasswordLifetime::Days(days) => i64::from(days),
        PasswordLifetime::Default => i64::try_from(default_days).unwrap_or(i64::MAX),
    };
    let set = attributes.password_set_micros;
    let over = days != 0 && set != 0 && now - set >= days.saturating_mul(DAY_MICROS);
    attributes.expired || over
}

impl Session {
    /// At the login: a password that has expired must be changed first. Fails with 1862 where
    /// such connections are not wanted.
    pub(crate) fn check_password_age(&mut self) -> Result<(), SqlError> {
        let default_days = self.server.globals.value("default_password_lifetime").number();
        let now = runtime::wall_clock_micros();
        self.must_change_password = has_expired(&self.user.attributes, default_days, now);
        let can_handle = self.capabilities & wire::capability::CAN_HANDLE_EXPIRED_PASSWORDS != 0;
        let refuses = self.server.globals.value("disconnect_on_expired_password").is_on();
        if self.must_change_password && refuses && !can_handle {
            return Err(SqlError::new(&codes::MUST_CHANGE_PASSWORD_LOGIN, &[]));
        }
        self.login_micros = now;
        self.user_version = 0;
        Ok(())
    }

    /// Whether commands have to pass the gate.
    pub(crate) fn needs_gate(&self) -> bool {
        let limits = &self.user.attributes.limits;
        self.must_change_password || limits.queries_per_hour != 0 || limits.updates_per_hour != 0
    }

    /// Fails with 1820 and 1226 if the command may not be run now.
    pub(crate) fn pass_gate(&mut self, command: &Command<'_>) -> Result<(), SqlError> {
        match command {
            Command::Query(text) => {
                let mut rest: &[u8] = text;
                while let Ok(parsed) = syntax::parse(rest, &self.settings.parse) {
                    self.pass_statement(&parsed.statement)?;
                    rest = &rest[parsed.end.min(rest.len())..];
                    if rest.trim_ascii().is_empty() || parsed.end == 0 {
                        break;
                    }
                }
                Ok(())
            }
            Command::Execute(execute) => self.pass_prepared(execute.statement),
            Command::BulkExecute { statement, .. } => self.pass_prepared(*statement),
            Command::Quit | Command::Ping | Command::CloseStatement(_) => Ok(()),
            _ if self.must_change_password => Err(SqlError::new(&codes::MUST_CHANGE_PASSWORD, &[])),
            _ => Ok(()),
        }
    }

    /// An execution, of however many sets of parameters, is one statement.
    fn pass_prepared(&mut self, id: u32) -> Result<(), SqlError> {
        let prepared = self.prepared.get(id);
        let statement = prepared.map(|prepared| prepared.statement.clone());
        statement.map_or(Ok(()), |statement| self.pass_statement(&statement))
    }

    fn pass_statement(&self, statement: &Statement) -> Result<(), SqlError> {
        let frees = matches!(statement, Statement::Set(_) | Statement::AlterUser(_));
        if self.must_change_password && !frees {
            return Err(SqlError::new(&codes::MUST_CHANGE_PASSWORD, &[]));
        }
        self.server.account_connections.count_statement(&self.user, is_update(statement))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_expire_by_order_and_by_age() {
        let mut attributes = AccountAttributes::default();
        let now = 100 * DAY_MICROS;
        assert!(!has_expired(&attributes, 0, now));
        assert!(!has_expired(&attributes, 3, now), "nobody knows when it was set");
        attributes.password_set_micros = 97 * DAY_MICROS;
        assert!(has_expired(&attributes, 3, now));
        assert!(!has_expired(&attributes, 4, now));
        attributes.lifetime = PasswordLifetime::Never;
        assert!(!has_expired(&attributes, 3, now));
        attributes.lifetime = PasswordLifetime::Days(2);
        assert!(has_expired(&attributes, 0, now));
        attributes.lifetime = PasswordLifetime::Days(4);
        assert!(!has_expired(&attributes, 3, now));
        attributes.expired = true;
        assert!(has_expired(&attributes, 0, now));
    }
}
