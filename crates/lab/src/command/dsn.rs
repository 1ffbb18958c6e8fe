//! `mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE`

use crate::client::Target;
use runtime::net::Address;
use std::net::ToSocketAddrs;
use std::time::Duration;

const DEFAULT_PORT: u16 = 3306;
const READ_TIMEOUT: Duration = Duration::from_secs(600);

/// Reads a DSN; the error says which part is wrong.
pub(super) fn parse(text: &str) -> Result<Target, String> {
    let form = "mysql://USER[:PASSWORD]@HOST[:PORT]/DATABASE is wanted";
    let rest = text.strip_prefix("mysql://").ok_or(form)?;
    let (account, place) = rest.rsplit_once('@').ok_or_else(|| format!("no '@': {form}"))?;
    let (user, password) = account.split_once(':').unwrap_or((account, ""));
    let (host, database) =
        place.split_once('/').ok_or_else(|| format!("no '/' before the database: {form}"))?;
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) => {
            let port = port.parse::<u16>().map_err(|_| format!("'{port}' is no port"))?;
            (name, port)
        }
        None => (host, DEFAULT_PORT),
    };
    let mut found = (name, port).to_socket_addrs().map_err(|e| format!("host '{name}': {e}"))?;
    let address = found.next().ok_or_else(|| format!("host '{name}' has no address"))?;
    if user.is_empty() || database.is_empty() {
        return Err(format!("user and database must be named: {form}"));
    }
    Ok(Target {
        address: Address::Tcp(address),
        user: decoded(user)?,
        password: decoded(password)?,
        database: decoded(database)?,
        read_timeout: READ_TIMEOUT,
    })
}

/// A part with `%` and two digits in place of characters that mean something in a DSN.
fn decoded(text: &str) -> Result<String, String> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) =
            piece.split_at_checked(2).ok_or_else(|| format!("'{text}' ends after '%'"))?;
        let byte = u8::from_str_radix(digits, 16);
        bytes.push(byte.map_err(|_| format!("'%{digits}' is no byte in '{text}'"))?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).map_err(|_| format!("'{text}' is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts() {
        let target = parse("mysql://bench:p%40ss:w@127.0.0.1:3307/test").expect("valid");
        assert_eq!(target.address, Address::Tcp(([127, 0, 0, 1], 3307).into()));
        let texts = [target.user, target.password, target.database];
        assert_eq!(texts, ["bench", "p@ss:w", "test"]);
        let short = parse("mysql://root@127.0.0.1/test").expect("valid");
        assert_eq!(short.address, Address::Tcp(([127, 0, 0, 1], 3306).into()));
        assert_eq!(short.password, "");
    }

    #[test]
    fn errors_name_the_part() {
        let cases = [
            ("http://x", "mysql://"),
            ("mysql://localhost/test", "'@'"),
            ("mysql://root@127.0.0.1", "'/'"),
            ("mysql://root@127.0.0.1:x/test", "'x' is no port"),
            ("mysql://root@127.0.0.1/", "database"),
            ("mysql://root:%4@127.0.0.1/test", "%"),
        ];
        for (text, wanted) in cases {
            let error = parse(text).expect_err(text);
            assert!(error.contains(wanted), "{text}: {error}");
        }
    }
}
