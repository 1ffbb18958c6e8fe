//! What to do about a failure.

use super::{Failure, Target};
use runtime::net::Address;
use std::io::ErrorKind;

/// What an error of a server means for those who measure it.
enum Kind {
    /// The account may not do what was asked.
    Privileges,
    /// There is no room for what is written.
    Full,
    /// Something that the workload needs is not there.
    Missing,
    /// A limit of the server was reached.
    Limit(&'static str),
    /// The server does not permit changes.
    ReadOnly,
}

/// Errors of storage engines say what the system said: 28 is "no space left on device", 122 "disk
/// quota exceeded".
fn says_full(message: &str) -> bool {
    let marks = ["error ", "Errcode: ", "errno: "];
    let numbers = marks.iter().flat_map(|mark| message.split(mark).skip(1));
    let mut numbers = numbers.map(|rest| {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        &rest[..digits]
    });
    numbers.any(|number| number == "28" || number == "122")
}

fn kind(number: u16, message: &str) -> Option<Kind> {
    Some(match number {
        1044 | 1045 | 1142 | 1143 | 1227 | 1370 | 1410 | 1698 | 1820 | 1862 | 3118 => {
            Kind::Privileges
        }
        1021 | 1114 => Kind::Full,
        3 | 1026 | 1030 | 1296 | 1877 if says_full(message) => Kind::Full,
        1049 | 1051 | 1054 | 1146 => Kind::Missing,
        1040 => Kind::Limit("raise its max_connections, or ask with fewer --clients"),
        1203 | 1226 => Kind::Limit("raise what the account may use, or take another account"),
        1461 => Kind::Limit("raise its max_prepared_stmt_count, or send statements as --text"),
        1129 => Kind::Limit("say FLUSH HOSTS to it: it blocks this machine after broken logins"),
        1206 | 1297 => Kind::Limit("raise its memory for locks, or lower --clients"),
        1290 | 1792 | 1836 => Kind::ReadOnly,
        _ => return None,
    })
}

impl Failure {
    /// Whether the same would fail again for as long as nobody helps: no run goes on after it.
    pub fn is_hopeless(&self) -> bool {
        let Self::Server { number, message, .. } = self else { return false };
        use Kind::{Full, Limit, Privileges, ReadOnly};
        matches!(kind(*number, message), Some(Privileges | Full | ReadOnly | Limit(_)))
    }

    /// The failure, and what to do about it.
    pub fn explained(&self, target: &Target) -> String {
        match self.advice(target) {
            Some(advice) => format!("{self}: {advice}"),
            None => self.to_string(),
        }
    }

    fn advice(&self, target: &Target) -> Option<String> {
        let Target { address, user, database, .. } = target;
        match self {
            Self::Connection(error) => match (error.kind(), address) {
                (ErrorKind::ConnectionRefused, _) => Some(format!(
                    "no server listens on {address}: start it, or correct the place in the DSN"
                )),
                (ErrorKind::NotFound, Address::Unix(path)) => Some(format!(
                    "there is no socket {}: start the server, or correct the path in the DSN",
                    path.display()
                )),
                (ErrorKind::PermissionDenied, _) => {
                    Some(format!("this user of the system may not connect to {address}"))
                }
                (
                    ErrorKind::TimedOut
                    | ErrorKind::HostUnreachable
                    | ErrorKind::NetworkUnreachable,
                    _,
                ) => Some(format!(
                    "{address} does not answer: correct the host in the DSN, or open the way to it"
                )),
                (ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset, _) => Some(format!(
                    "the server at {address} ended the connection: its error log says why"
                )),
                _ if error.raw_os_error().is_some_and(|number| number == 24 || number == 23) => {
                    Some("raise the limit of open files (ulimit -n), one for a connection".into())
                }
                _ => None,
            },
            Self::Server { number, message, .. } => Some(match kind(*number, message)? {
                Kind::Privileges if matches!(number, 1045 | 1698) => {
                    format!("'{user}' may not log in so: correct user and password in the DSN")
                }
                Kind::Privileges => format!(
                    "let the account do it (GRANT ALL ON `{database}`.* TO '{user}'), or name \
                     another one in the DSN"
                ),
                Kind::Full => {
                    "the disk of the server is full: free some space, or load fewer rows".into()
                }
                Kind::Missing if *number == 1049 => {
                    format!("make it (CREATE DATABASE `{database}`), or correct the end of the DSN")
                }
                Kind::Missing => {
                    "load the workload first, with the same parameters (gannet-lab load)".into()
                }
                Kind::Limit(what) => what.into(),
                Kind::ReadOnly => {
                    "the server refuses changes: switch read_only off, or name another one".into()
                }
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        Target {
            address: Address::Tcp(([127, 0, 0, 1], 3306).into()),
            user: "bench".into(),
            password: String::new(),
            database: "test".into(),
            read_timeout: std::time::Duration::from_secs(1),
            tls: crate::client::Tls::Off,
        }
    }

    fn server(number: u16, message: &str) -> Failure {
        Failure::Server { number, state: "HY000".into(), message: message.into() }
    }

    #[test]
    fn advice_names_what_to_do() {
        let cases = [
            (1044, "Access denied for user", true, "GRANT ALL ON `test`.* TO 'bench'"),
            (1045, "Access denied for user", true, "correct user"),
            (1142, "INSERT command denied", true, "GRANT ALL"),
            (1021, "Disk full (/tmp/x); waiting", true, "free some space"),
            (1114, "The table 'sbtest1' is full", true, "free some space"),
            (1030, "Got error 28 \"No space left on device\" from storage", true, "free some"),
            (1026, "Error writing file 'x' (Errcode: 28 \"No space\")", true, "free some space"),
            (3, "Error writing file 'x' (errno: 28 - No space left)", true, "free some space"),
            (1049, "Unknown database 'test'", false, "CREATE DATABASE `test`"),
            (1146, "Table 'test.sbtest1' doesn't exist", false, "gannet-lab load"),
            (1040, "Too many connections", true, "max_connections"),
            (1461, "Can't create more than max_prepared_stmt_count", true, "--text"),
        ];
        for (number, message, is_hopeless, advice) in cases {
            let failure = server(number, message);
            assert_eq!(failure.is_hopeless(), is_hopeless, "{number}");
            let text = failure.explained(&target());
            assert!(text.contains(message) && text.contains(advice), "{text}");
        }
    }

    #[test]
    fn other_errors_stand_for_themselves() {
        for failure in [
            server(1062, "Duplicate entry '28' for key"),
            server(1030, "Got error 128 \"Out of memory\" from storage engine"),
            server(1213, "Deadlock found"),
        ] {
            assert!(!failure.is_hopeless());
            assert_eq!(failure.explained(&target()), failure.to_string());
        }
    }

    #[test]
    fn a_closed_port_is_named() {
        let refused = Failure::from(std::io::Error::from(ErrorKind::ConnectionRefused));
        let text = refused.explained(&target());
        assert!(text.contains("no server listens on 127.0.0.1:3306"), "{text}");
    }
}
