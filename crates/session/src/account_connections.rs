//! How many connections each account has, for `max_user_connections`.
//!
//! A session holds an [`AccountSlot`]; dropping it gives the slot back, however the session ends.

use crate::ServerState;
use catalog::{Privilege, UserPrivileges};
use runtime::sync::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use types::{SqlError, codes};

/// Connections by account.
#[derive(Default)]
pub(crate) struct AccountConnections {
    by_account: Mutex<HashMap<(String, String), Arc<AtomicI64>>>,
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
    /// limit allows; 0 is no limit, a negative one allows none. Administrators are not limited.
    pub(crate) fn take(&self, user: &UserPrivileges, limit: i64) -> Result<AccountSlot, SqlError> {
        let account = (user.account.user.clone(), user.account.host.0.to_string());
        let count = self.by_account.lock().entry(account).or_default().clone();
        let slot = AccountSlot { count };
        let connections = slot.count.fetch_add(1, Ordering::Relaxed) + 1;
        let is_exempt =
            user.global.has(Privilege::Super) || user.global.has(Privilege::ConnectionAdmin);
        if limit != 0 && connections > limit && !is_exempt {
            let name = &user.account.user;
            return Err(SqlError::new(&codes::TOO_MANY_USER_CONNECTIONS, &[name]));
        }
        Ok(slot)
    }
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
