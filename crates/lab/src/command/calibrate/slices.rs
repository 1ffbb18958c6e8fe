//! Who may run now, and what came of it.
//!
//! 1. One client runs, the others are stopped: what neighbours take of the machine changes from
//!    second to second and meets all alike.
//! 2. A look at the figures comes when the server has nothing to do: what a client had asked when
//!    it was stopped is answered first, and counted for it ([`QUIET`]). What the server does later
//!    for what was asked (purge) meets whoever comes next; since the order goes there and back,
//!    each follows each.
//! 3. Transactions are those that the server counts, whoever asks; the question itself lies
//!    between two slices.
//! 4. Processor time is the kernel's, in nanoseconds. What cannot be told is an error, never 0.

use super::clients::Client;
use crate::client::Connection;
use crate::machine::Used;
use crate::workload::sysbench::Script;
use std::time::Duration;

/// How long a server has for what is asked already.
const QUIET: Duration = Duration::from_millis(10);

/// What a slice found, or many together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Found {
    /// Transactions a second.
    pub(super) per_second: f64,
    /// Microseconds of the server's processor time for each.
    pub(super) server_micros: f64,
    /// Microseconds of the client's.
    pub(super) client_micros: f64,
}

impl Found {
    /// Of nanoseconds of server and client for so many transactions.
    fn of((server, client): (u64, u64), transactions: u64, seconds: f64) -> Result<Self, String> {
        let all = [("transaction", transactions), ("server time", server), ("client time", client)];
        if let Some((what, _)) = all.into_iter().find(|(_, value)| *value == 0) {
            return Err(format!("a slice has no {what}: it is too short"));
        }
        let each = |nanos: u64| nanos as f64 / 1e3 / transactions as f64;
        Ok(Self {
            per_second: transactions as f64 / seconds,
            server_micros: each(server),
            client_micros: each(client),
        })
    }
}

/// The server, and how it is asked for its count.
pub(super) struct Counted {
    server: u32,
    connection: Connection,
    question: String,
}

impl Counted {
    /// An error if the server counts no transactions of the script.
    pub(super) fn new(server: u32, connection: Connection, script: Script) -> Result<Self, String> {
        let name = script
            .counter()
            .ok_or_else(|| format!("no server counts the transactions of {}", script.name()))?;
        let question = format!("SHOW GLOBAL STATUS LIKE '{name}'");
        Ok(Self { server, connection, question })
    }

    /// Gives a client the machine for so long.
    pub(super) fn slice(&mut self, client: &mut Client, length: Duration) -> Result<Found, String> {
        let id = client.id()?;
        let before = self.transactions()?;
        let (server, own) = (Used::of(self.server)?, Used::of(id)?);
        let begin = runtime::now();
        client.resume()?;
        runtime::sleep(length);
        client.stop()?;
        let seconds = (runtime::now() - begin).as_secs_f64();
        runtime::sleep(QUIET);
        let nanos = (Used::of(self.server)?.since(&server), Used::of(id)?.since(&own));
        Found::of(nanos, self.transactions()?.saturating_sub(before), seconds)
    }

    fn transactions(&mut self) -> Result<u64, String> {
        let mut count = None;
        let asked = self.connection.query(&self.question, |row| {
            count = row.integer(1);
            Ok(())
        });
        asked.map_err(|failure| format!("the server's count: {failure}"))?;
        count.and_then(|count| u64::try_from(count).ok()).ok_or_else(|| "no count".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{signal, spawned};
    use std::process::Command;

    #[test]
    fn what_was_used_is_shared_by_transactions() {
        let expected = Found { per_second: 50.0, server_micros: 10.0, client_micros: 5.0 };
        assert_eq!(Found::of((1_000_000, 500_000), 100, 2.0), Ok(expected));
    }

    #[test]
    fn a_figure_that_is_missing_is_no_zero() {
        for (nanos, transactions, word) in
            [((0, 500), 100, "server"), ((1000, 0), 100, "client"), ((1000, 500), 0, "transaction")]
        {
            let why = Found::of(nanos, transactions, 1.0).expect_err("incomplete");
            assert!(why.contains(word), "{why}");
        }
    }

    /// What a process that does nothing but work uses in a while, nanoseconds.
    fn used_for_a_while(id: u32) -> u64 {
        let before = Used::of(id).expect("the kernel tells");
        std::thread::sleep(Duration::from_millis(100));
        Used::of(id).expect("the kernel tells").since(&before)
    }

    #[test]
    fn who_is_stopped_uses_no_time_and_goes_on_later() {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        let running = spawned(command, None).expect("a shell");
        // It may be anybody's turn meanwhile.
        assert!(used_for_a_while(running.id()) > 1_000_000);
        signal(running.id(), "STOP").expect("ours");
        std::thread::sleep(QUIET);
        assert_eq!(used_for_a_while(running.id()), 0);
        signal(running.id(), "CONT").expect("ours");
        assert!(used_for_a_while(running.id()) > 1_000_000);
    }
}
