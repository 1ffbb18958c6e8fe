//! How many connections each account has, for `max_user_connections`.
//!
//! A session holds an [`AccountSlot`]; dropping it gives the slot back, however the session ends.

use crate::ServerState;
use crate::gate::Hour;
use catalog::{Account, Privilege, UserPrivileges};
use runtime::sync::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use types::{SqlError, codes};

/// Connections by account.
#[derive(Default)]
pub(crate) struct AccountConnections {
    by_account: Mutex<HashMap<(String, String), Arc<AtomicI64>>>,
    /// Of accounts with a limit per hour.
    hours: Mutex<HashMap<Account, Hour>>,
}

/// One connection of an account.
pub(crate) struct AccountSlot {
    count: Arc<AtomicI64>,
}

impl Drop for AccountSlot {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AccountConnections {
    /// Takes a slot for one more connection. Fails with 1203 when the account has as many as the
    /// server's limit allows (0 is none, a negative one allows no connection; administrators are
    /// not limited), with 1226 when it has as many as its own limits allow.
    pub(crate) fn take(&self, user: &UserPrivileges, limit: i64) -> Result<AccountSlot, SqlError> {
        let account = (user.account.user.clone(), user.account.host.0.to_string());
        let count = self.by_account.lock().entry(account).or_default().clone();
        let slot = AccountSlot { count };
        let connections = slot.count.fetch_add(1, Ordering::Relaxed) + 1;
        let is_exempt =
            user.global.has(Privilege::Super) || user.global.has(Privilege::ConnectionAdmin);
        let own = user.attributes.limits;
        if own.user_connections != 0 {
            if connections > i64::from(own.user_connections) {
                return Err(limit_reached(user, "max_user_connections", connections - 1));
            }
        } else if limit != 0 && connections > limit && !is_exempt {
            let name = &user.account.user;
            return Err(SqlError::new(&codes::TOO_MANY_USER_CONNECTIONS, &[name]));
        }
        if own.connections_per_hour != 0 {
            self.count_in_hour(user, own.connections_per_hour)?;
        }
        Ok(slot)
    }

    fn count_in_hour(&self, user: &UserPrivileges, limit: u32) -> Result<(), SqlError> {
        let now = runtime::now();
        let mut hours = self.hours.lock();
        let hour = hours.entry(user.account.clone()).or_insert_with(|| Hour::begin(now));
        hour.look(now);
        count(&mut hour.connections, limit, user, "max_connections_per_hour")
    }

    /// Counts a statement of an account with limits per hour. Fails with 1226.
    pub(crate) fn count_statement(
        &self,
        user: &UserPrivileges,
        is_update: bool,
    ) -> Result<(), SqlError> {
        let now = runtime::now();
        let limits = user.attributes.limits;
        let mut hours = self.hours.lock();
        let hour = hours.entry(user.account.clone()).or_insert_with(|| Hour::begin(now));
        hour.look(now);
        if limits.queries_per_hour != 0 {
            count(&mut hour.queries, limits.queries_per_hour, user, "max_queries_per_hour")?;
        }
        if is_update && limits.updates_per_hour != 0 {
            count(&mut hour.updates, limits.updates_per_hour, user, "max_updates_per_hour")?;
        }
        Ok(())
    }

    /// FLUSH USER_RESOURCES: every hour begins anew.
    pub(crate) fn forget_hours(&self) {
        self.hours.lock().clear();
    }
}

/// One more of what is limited; 1226 where there may be no more.
fn count(used: &mut u32, limit: u32, user: &UserPrivileges, name: &str) -> Result<(), SqlError> {
    if *used >= limit {
        return Err(limit_reached(user, name, i64::from(*used)));
    }
    *used += 1;
    Ok(())
}

/// 1226.
fn limit_reached(user: &UserPrivileges, limit: &str, count: i64) -> SqlError {
    let arguments: [&dyn std::fmt::Display; 3] = [&user.account.user, &limit, &count];
    SqlError::new(&codes::USER_LIMIT_REACHED, &arguments)
}

impl ServerState {
    /// `max_user_connections`.
    pub(crate) fn take_account_slot(&self, user: &UserPrivileges) -> Result<AccountSlot, SqlError> {
        let limit = match self.globals.value("max_user_connections") {
            crate::variables::VariableValue::Integer(limit) => limit,
            other => other.number() as i64,
        };
        self.account_connections.take(user, limit)
    }
}
